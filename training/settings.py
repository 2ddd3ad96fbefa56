"""Settings of the training; the defaults made the committed encoder."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes, optimizer and seed; `logit_scale` is held where CLIP's ends."""

    images: int = 20_000
    epochs: int = 12
    batch: int = 256
    dimension: int = 65
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    logit_scale: float = 100.0
    seed: int = 7
