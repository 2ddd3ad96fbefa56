"""Trains the embedded encoder and writes its folder: `python -m training.train`.

A contrastive loss on pairs of picture and caption. As many captions of a batch are true of a
picture, the target is uniform over all of them, in both directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from training.drawn import PREPROCESSING, Drawn
from training.towers import ImageTower, TextTower
from transduce.encoders.tokenizers.words import WordTokenizer
from transduce.world import Thing
from transduce.world.captions import ABOUT, WORDS, Caption, caption

EMBEDDED = Path("src/transduce/encoders/embedded")
CONTEXT_LENGTH = 16


@dataclass(frozen=True)
class Settings:
    pictures: int = 20_000
    epochs: int = 16
    batch: int = 256
    dimension: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    logit_scale: float = 30.0  # held fixed, so that softmax(30 cos) means what it says
    seed: int = 7


def train(settings: Settings, drawn: Drawn) -> tuple[ImageTower, TextTower, WordTokenizer]:
    torch.manual_seed(settings.seed)
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
            pixels = as_pixels(_turned(drawn.pictures[chosen], generator))
            truth = torch.from_numpy(truth_of([drawn.things[i] for i in chosen], captions))
            loss = contrast(images(pixels), texts(tokens), truth, settings.logit_scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1:2d} of {settings.epochs}: loss {np.mean(losses):.4f}", flush=True)
    return images.eval(), texts.eval(), tokenizer


def contrast(images: Tensor, texts: Tensor, truth: Tensor, scale: float) -> Tensor:
    """Cross-entropy of softmax(scale cos) with the true captions, and with the true pictures."""
    logits = scale * normalize(images) @ normalize(texts).T
    to_texts = cross_entropy(logits, truth / truth.sum(1, keepdim=True))
    to_images = cross_entropy(logits.T, truth.T / truth.T.sum(1, keepdim=True))
    return (to_texts + to_images) / 2


def as_pixels(pictures: np.ndarray) -> Tensor:
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (PREPROCESSING.mean, PREPROCESSING.std))
    # A transposed view of [n, height, width, 3] is torch's channels-last order: faster here.
    raw = torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float() / 255
    return (raw - mean) / std


def truth_of(things: Sequence[Thing], captions: Sequence[Caption]) -> np.ndarray:
    """1 where the caption (column) is true of the thing (row): `Caption.is_true_of`, at once."""
    facts = np.array(things)
    told = np.array([[word or "" for word in entry.told] for entry in captions])
    fits = (told[None] == facts[:, None]) | (told[None] == "")
    return fits.all(2).astype(np.float32)


def _turned(pictures: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Quarter turns and mirror images leave every caption true."""
    turned = np.rot90(pictures, generator.integers(4), axes=(1, 2))
    return turned[:, :, ::-1] if generator.integers(2) else turned
