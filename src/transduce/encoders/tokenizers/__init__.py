"""Tokenizers of `onnx:` folders: sentences to rows of token ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from transduce.encoders.onnx_config import TOKENIZER, TextSettings


class Tokenizer(Protocol):
    """Sentences to rows of token ids."""

    def encode(
        self, sentences: Sequence[str]
    ) -> tuple[Int64[np.ndarray, "text token"], Int64[np.ndarray, "text token"]]:
        """Return token ids padded to the context length, and a mask: 1 for a token."""
        ...


def load_tokenizer(folder: Path, settings: TextSettings) -> Tokenizer:
    """Return the tokenizer of an `onnx:` folder."""
    path = folder / TOKENIZER
    if settings.tokenizer == "words":
        from transduce.encoders.tokenizers.words import WordTokenizer

        return WordTokenizer.read(path, settings)
    from transduce.encoders.tokenizers.subwords import SubwordTokenizer

    return SubwordTokenizer(path, settings)
