"""A real, if very small, CLIP: trained here within seconds on drawings of colored squares."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from transduce.encoders.torchvision_stand_in import import_torchvision

import_torchvision()  # transformers does, and one made for another torch would stop it
torch.set_num_threads(1)  # on a busy machine, tiny layers wait for each other ten times longer
from transformers import CLIPConfig, CLIPModel  # noqa: E402

COLORS = {
    "red": (0.8, 0.1, 0.1),
    "green": (0.1, 0.7, 0.1),
    "blue": (0.1, 0.2, 0.8),
    "yellow": (0.8, 0.8, 0.1),
    "purple": (0.6, 0.1, 0.6),
    "cyan": (0.1, 0.7, 0.8),
    "orange": (0.9, 0.5, 0.1),
    "white": (0.9, 0.9, 0.9),
    "black": (0.1, 0.1, 0.1),
}
CLASS_NAMES = tuple(COLORS)
WORDS = ("<start>", "a", "picture", "of", "square", *COLORS, ".", "<end>")


class WordTokenizer:
    """Words to numbers, in the manner of a Hugging Face tokenizer."""

    def __call__(self, sentences):
        rows = [sentence.replace(".", " .").split() for sentence in sentences]
        return {"input_ids": [[WORDS.index(w) for w in ("<start>", *row, "<end>")] for row in rows]}


def draw(labels: np.ndarray, generator: np.random.Generator, noise: float) -> torch.Tensor:
    """Pictures (image, 3, 8, 8): a square of about the class's color on a noisy ground."""
    pictures = 0.5 + noise * generator.normal(size=(len(labels), 3, 8, 8))
    shades = np.array(list(COLORS.values()))[labels]
    shades += noise * generator.normal(size=shades.shape)
    for picture, shade, (row, column) in zip(
        pictures, shades, generator.integers(0, 4, (len(labels), 2)), strict=True
    ):
        picture[:, row : row + 5, column : column + 5] = shade[:, np.newaxis, np.newaxis]
    return torch.from_numpy(pictures.astype(np.float32)) * 2 - 1


@dataclass(frozen=True)
class SmallClip:
    model: CLIPModel
    tokenizer: WordTokenizer

    def embed(self, pictures: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            pooled = self.model.vision_model(pixel_values=pictures).pooler_output
            return self.model.visual_projection(pooled).numpy()

    def captions(self) -> torch.Tensor:
        sentences = [f"a picture of a {name} square." for name in CLASS_NAMES]
        return torch.tensor(self.tokenizer(sentences)["input_ids"])


@cache
def trained_clip(steps: int = 200) -> SmallClip:
    torch.manual_seed(0)
    shared = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    end = WORDS.index("<end>")
    text = {
        "num_hidden_layers": 1,
        "vocab_size": len(WORDS),
        "max_position_embeddings": 24,
        "bos_token_id": 0,
        "eos_token_id": end,
        "pad_token_id": end,
    }
    vision = {"num_hidden_layers": 1, "image_size": 8, "patch_size": 4}
    config = CLIPConfig(text_config=shared | text, vision_config=shared | vision, projection_dim=16)
    clip = SmallClip(CLIPModel(config), WordTokenizer())
    captions, generator = clip.captions(), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(clip.model.parameters(), lr=3e-3)
    for _ in range(steps):
        labels = generator.integers(0, len(CLASS_NAMES), 64)
        pictures = draw(labels, generator, noise=0.1)
        scores = clip.model(input_ids=captions, pixel_values=pictures).logits_per_image
        loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    clip.model.eval()
    return clip
