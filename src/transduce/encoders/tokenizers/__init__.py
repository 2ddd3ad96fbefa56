"""Tokenizers of `onnx:` folders: sentences to rows of token ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from jaxtyping import Int64

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How sentences become the rows of token ids that the text tower takes."""

    tokenizer: Literal["words", "tokenizers"]
    context_length: int
    padding_id: int = 0


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
