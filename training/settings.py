"""What the training run can be told; the defaults made the committed encoder."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    pictures: int = 20_000
    epochs: int = 12
    batch: int = 256
    dimension: int = 65
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    logit_scale: float = 100.0  # held where CLIP's ends
    seed: int = 7
