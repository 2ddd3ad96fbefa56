"""A tokenizer.json of Hugging Face, read by the light `tokenizers` package."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from transduce.encoders.tokenizers import TextSettings
from transduce.errors import InvalidEncoder, MissingExtra


class SubwordTokenizer:
    """Cuts at the context length (special tokens kept) and pads up to it."""

    def __init__(self, path: Path, settings: TextSettings) -> None:
        try:
            import tokenizers
        except ImportError:
            raise MissingExtra(f"The tokenizer {path}") from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises bare Exception
            raise InvalidEncoder(
                f"Expected a tokenizer.json of Hugging Face in {path}, found: {error}; "
                "export the model again."
            ) from error
        self._tokenizer.enable_truncation(settings.context_length)
        self._tokenizer.enable_padding(pad_id=settings.padding_id, length=settings.context_length)

    def encode(
        self, sentences: Sequence[str]
    ) -> tuple[Int64[np.ndarray, "text token"], Int64[np.ndarray, "text token"]]:
        """Return token ids padded to the context length, and a mask: 1 for a token."""
        encoded = self._tokenizer.encode_batch(list(sentences))
        tokens = np.array([row.ids for row in encoded], np.int64)
        mask = np.array([row.attention_mask for row in encoded], np.int64)
        return tokens, mask
