"""Trains the embedded encoder and writes its folder: `python -m training.train`.

A contrastive loss on pairs of picture and caption. As many captions of a batch are true of a
picture, the target is uniform over all of them, in both directions.
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

from training.captions import ABOUT, WORDS, Caption, caption
from training.card import write_card
from training.drawn import Drawn, as_pixels, draw_set
from training.export import export
from training.settings import Settings
from training.towers import ImageTower, TextTower
from transduce.benchmark.synthetic import SEEN, Thing
from transduce.encoders.shapes import FOLDER
from transduce.encoders.tokenizers.words import WordTokenizer

CONTEXT_LENGTH = 16


def train(settings: Settings, drawn: Drawn) -> tuple[ImageTower, TextTower, WordTokenizer]:
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
            pixels = torch.from_numpy(as_pixels(_turned(drawn.pictures[chosen], generator)))
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
    """Cross-entropy of softmax(scale cos) with the true captions, and with the true pictures."""
    logits = scale * images @ texts.T
    to_texts = cross_entropy(logits, truth / truth.sum(1, keepdim=True))
    to_images = cross_entropy(logits.T, truth.T / truth.T.sum(1, keepdim=True))
    return (to_texts + to_images) / 2


def truth_of(
    things: Sequence[Thing], captions: Sequence[Caption]
) -> Float32[np.ndarray, "thing caption"]:
    """1 where the caption (column) is true of the thing (row): `Caption.is_true_of`, at once."""
    facts = np.array(things)
    told = np.array([[word or "" for word in entry.told] for entry in captions])
    fits: Float32[np.ndarray, "thing caption"]
    fits = ((told[None] == facts[:, None]) | (told[None] == "")).all(2).astype(np.float32)
    return fits


def _turned(pictures: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Quarter turns and mirror images leave every caption true."""
    turned: np.ndarray = np.rot90(pictures, int(generator.integers(4)), axes=(1, 2))
    mirrored: np.ndarray = turned[:, :, ::-1]
    return mirrored if generator.integers(2) else turned


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the encoder is written")
    parser.add_argument("--pictures", type=int, default=Settings.pictures)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--test-pictures", type=int, default=3600)
    parser.add_argument("--tasks", type=int, default=300)
    chosen = parser.parse_args(arguments)
    settings = Settings(pictures=chosen.pictures, epochs=chosen.epochs)
    started = time.perf_counter()
    drawn = draw_set(SEEN, settings.pictures, "training", settings.seed)
    print(f"drew {settings.pictures} pictures in {time.perf_counter() - started:.0f} s", flush=True)
    images, texts, tokenizer = train(settings, drawn)
    export(chosen.folder, images, texts, tokenizer, settings.dimension)
    seconds = time.perf_counter() - started
    card = write_card(chosen.folder, settings, seconds, chosen.test_pictures, chosen.tasks)
    print(card)


if __name__ == "__main__":
    main()
