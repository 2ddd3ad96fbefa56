"""A real, if very small, CLIP: trained here within seconds on drawings of coloured shapes."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torchvision_on_cpu import let_torchvision_import

let_torchvision_import()
torch.set_num_threads(1)  # on a busy machine, tiny layers wait for each other ten times longer
from transformers import CLIPConfig, CLIPModel  # noqa: E402

COLOURS = {"red": (0.9, 0.1, 0.1), "green": (0.1, 0.8, 0.1), "blue": (0.1, 0.2, 0.9)}
SHAPES = ("square", "disc", "bar")
CLASS_NAMES = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
WORDS = ("<start>", "a", "picture", "of", *COLOURS, *SHAPES, ".", "<end>")


class WordTokenizer:
    """Words to numbers, in the manner of a Hugging Face tokenizer."""

    def __call__(self, sentences):
        rows = [sentence.replace(".", " .").split() for sentence in sentences]
        return {"input_ids": [[WORDS.index(w) for w in ("<start>", *row, "<end>")] for row in rows]}


def draw(labels: np.ndarray, generator: np.random.Generator, noise: float) -> torch.Tensor:
    """Pictures (image, 3, 16, 16): a shape of about the class's colour on a noisy ground."""
    rows, columns = np.mgrid[:16, :16]
    pictures = []
    for label in labels:
        colour, shape = CLASS_NAMES[label].split()
        y, x = generator.uniform(5, 11, 2)
        inside = {
            "square": (abs(rows - y) < 4) & (abs(columns - x) < 4),
            "disc": (rows - y) ** 2 + (columns - x) ** 2 < 16,
            "bar": (abs(rows - y) < 1.5) & (abs(columns - x) < 7),
        }[shape]
        picture = np.full((3, 16, 16), 0.4) + noise * generator.normal(size=(3, 16, 16))
        shade = np.array(COLOURS[colour]) + 0.1 * generator.normal(size=3)
        picture[:, inside] = shade[:, np.newaxis]
        pictures.append(picture)
    return torch.from_numpy(np.array(pictures, dtype=np.float32)) * 2 - 1


@dataclass(frozen=True)
class SmallClip:
    model: CLIPModel
    tokenizer: WordTokenizer

    def embed(self, pictures: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            pooled = self.model.vision_model(pixel_values=pictures).pooler_output
            return self.model.visual_projection(pooled).numpy()


@cache
def trained_clip(steps: int = 400) -> SmallClip:
    torch.manual_seed(0)
    shared = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    end = WORDS.index("<end>")
    config = CLIPConfig(
        text_config=shared
        | {
            "num_hidden_layers": 2,
            "vocab_size": len(WORDS),
            "max_position_embeddings": 24,
            "bos_token_id": 0,
            "eos_token_id": end,
            "pad_token_id": end,
        },
        vision_config=shared | {"num_hidden_layers": 2, "image_size": 16, "patch_size": 4},
        projection_dim=16,
    )
    model, tokenizer = CLIPModel(config), WordTokenizer()
    captions = torch.tensor(
        tokenizer([f"a picture of a {name}." for name in CLASS_NAMES])["input_ids"]
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = np.random.default_rng(0)
    for _ in range(steps):
        labels = generator.integers(0, len(CLASS_NAMES), 64)
        output = model(
            input_ids=captions, pixel_values=draw(labels, generator, noise=0.1)
        ).logits_per_image
        loss = torch.nn.functional.cross_entropy(output, torch.from_numpy(labels))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    optimiser.zero_grad()
    return SmallClip(model.eval(), tokenizer)
