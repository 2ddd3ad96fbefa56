"""Train the shapes encoder and write its folder: `python -m training.train`.

A contrastive loss on pairs of image and caption. As many captions of a batch are true of an
image, the target is uniform over all of them, in both directions.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor
from torch.nn.functional import cross_entropy

from training.calibrate import calibrate
from training.captions import ABOUT, WORDS, Caption, caption
from training.card import write_card
from training.drawn import Drawn, as_pixels, draw_set
from training.export import export
from training.settings import Settings
from training.towers import ImageTower, TextTower
from transduce.benchmark.synthetic import SEEN, Thing
from transduce.encoders.onnx import SHAPES_FOLDER
from transduce.encoders.tokenizers.words import WordTokenizer

CONTEXT_LENGTH = 16


def train(settings: Settings, drawn: Drawn) -> tuple[ImageTower, TextTower, WordTokenizer]:
    """Return the trained towers and the tokenizer."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    generator = np.random.default_rng(settings.seed)
    tokenizer = WordTokenizer(ABOUT, WORDS, CONTEXT_LENGTH)
    images = ImageTower(settings.dimension).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    texts = TextTower(len(tokenizer.ids), settings.dimension)
    weights = [*images.parameters(), *texts.parameters()]
    optimizer = torch.optim.AdamW(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    batches = len(drawn.things) // settings.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=settings.epochs * batches
    )
    for epoch in range(settings.epochs):
        order = generator.permutation(len(drawn.things))[: batches * settings.batch]
        losses = []
        for chosen in order.reshape(batches, settings.batch):
            captions = [caption(drawn.things[i], generator) for i in chosen]
            tokens = torch.from_numpy(tokenizer.encode([c.sentence for c in captions])[0])
            pixels = torch.from_numpy(as_pixels(_turned(drawn.images[chosen], generator)))
            truth = torch.from_numpy(truth_of([drawn.things[i] for i in chosen], captions))
            loss = contrast(images(pixels), texts(tokens), truth, settings.logit_scale)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1:2d} of {settings.epochs}: loss {np.mean(losses):.4f}", flush=True)
    return images.eval(), texts.eval(), tokenizer


def contrast(images: Tensor, texts: Tensor, truth: Tensor, scale: float) -> Tensor:
    """Return the cross-entropy of softmax(scale cos) with true captions, and with true images."""
    logits = scale * images @ texts.T
    to_texts = cross_entropy(logits, truth / truth.sum(1, keepdim=True))
    to_images = cross_entropy(logits.T, truth.T / truth.T.sum(1, keepdim=True))
    return (to_texts + to_images) / 2


def truth_of(
    things: Sequence[Thing], captions: Sequence[Caption]
) -> Float32[np.ndarray, "thing caption"]:
    """Return 1 where the caption (column) is true of the thing (row): `is_true_of`, at once."""
    facts = np.array(things)
    words = np.array([[word or "" for word in entry.facts] for entry in captions])
    return ((words[None] == facts[:, None]) | (words[None] == "")).all(2).astype(np.float32)


def _turned(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Turn by quarters and mirror, which leaves every caption true."""
    turned = np.rot90(images, int(generator.integers(4)), axes=(1, 2))
    return turned[:, :, ::-1] if generator.integers(2) else turned


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export and measure."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=SHAPES_FOLDER, help="where the encoder is written"
    )
    parser.add_argument("--images", type=int, default=Settings.images)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--test-images", type=int, default=3600)
    parser.add_argument("--tasks", type=int, default=300)
    chosen = parser.parse_args(arguments)
    settings = Settings(images=chosen.images, epochs=chosen.epochs)
    started = time.perf_counter()
    drawn = draw_set(SEEN, settings.images, "training", settings.seed)
    print(f"drew {settings.images} images in {time.perf_counter() - started:.0f} s", flush=True)
    images, texts, tokenizer = train(settings, drawn)
    export(chosen.folder, images, texts, tokenizer, settings.dimension)
    before, after = calibrate(chosen.folder, chosen.test_images)
    print(f"cone of {before:.3f} -> {after:.3f}", flush=True)
    seconds = time.perf_counter() - started
    card = write_card(chosen.folder, settings, seconds, chosen.test_images, chosen.tasks)
    print(card)


if __name__ == "__main__":
    main()
