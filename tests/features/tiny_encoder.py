"""A deterministic encoder in NumPy whose rows depend on their batch.

A real encoder's last bits depend on what else is in the batch; here the dependence is large, so
that a store made from other batches cannot look the same by luck.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from transduce.encoders.encoder import Identity, Preprocessing

PREPROCESSING = Preprocessing(size=16)


@dataclass(frozen=True)
class TinyEncoder:
    name: str = "tiny"
    weights: str = "0123"
    dimension: int = 8
    delay: float = 0.0
    preprocessing: Preprocessing = PREPROCESSING
    calls: list[int] = field(default_factory=list)

    @property
    def identity(self):
        described = self.preprocessing.describe()
        return Identity(self.name, self.weights, described, self.dimension)

    def embed_images(self, pixels):
        assert pixels.dtype == np.float32
        assert pixels.shape[1:] == (3, self.preprocessing.size, self.preprocessing.size)
        self.calls.append(len(pixels))
        time.sleep(self.delay)
        flat = pixels.reshape(len(pixels), -1)
        random = np.random.default_rng(0)
        projection = random.normal(size=(flat.shape[1], self.dimension)).astype(np.float32)
        rows = flat @ projection + 0.05 * flat.sum(1).mean()
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_texts(self, sentences):
        raise NotImplementedError
