"""What an encoder is: two towers into one space, and an identity that pins them down."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float32

from transduce.encoders.preprocessing import Preprocessing


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that decides what an embedding is: two stores mix only if these are equal."""

    encoder: str  # as the user writes it, such as "open_clip:ViT-B-32/openai"
    weights: str  # a hash of the weights, not their name
    preprocessing: str  # `Preprocessing.describe()`
    dimension: int


class Encoder(Protocol):
    """Unit embeddings of pictures and of sentences, comparable by their cosine.

    `preprocessing` is a plain value, so that worker processes can decode pictures into the
    array that `embed_images` takes without loading the model.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def preprocessing(self) -> Preprocessing: ...

    def embed_images(
        self, pixels: Float32[np.ndarray, "image 3 height width"]
    ) -> Float32[np.ndarray, "image feature"]: ...

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]: ...
