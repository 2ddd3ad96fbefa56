"""The tokenizer.json of a repository on the hub, padded as its model was trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from transduce.errors import InvalidEncoder, MissingExtra

# The longest sentence in tokens where no file of the repository tells it.
LENGTHS = {"clip": 77, "siglip": 64}
MOST_TOKENS = 100_000


@dataclass(frozen=True, slots=True)
class HubTokenizer:
    """Tokenizer that cuts at `length` tokens; pads to it if `full`, else to the longest text."""

    tokenizer: Any  # tokenizers.Tokenizer, which has no types
    length: int
    padding_id: int
    full: bool
    lowercase: bool

    @classmethod
    def read(
        cls,
        path: Path,
        config: Mapping[str, Any],
        *,
        family: str | None,
        length: int | None = None,
        words: Mapping[str, Any] | None = None,
    ) -> "HubTokenizer":
        """Read a tokenizer.json; `config` is the model's config.json.

        `length` is what the graph says that every sentence has, None where it takes any; `words`
        is the tokenizer_config.json, where there is one. Where the family is unknown, sentences are
        padded to the longest that the model knows.
        """
        tokenizer, words = _tokenizer(path), words or {}
        text = config.get("text_config")
        text = text if isinstance(text, Mapping) else {}
        padding = tokenizer.padding or {}
        lengths = (
            length,
            padding.get("length"),
            text.get("max_position_embeddings"),
            words.get("model_max_length"),
            (tokenizer.truncation or {}).get("max_length"),
            LENGTHS.get(family or ""),
        )
        # A tokenizer without a limit says so by a number of thirty digits.
        known = [n for n in lengths if isinstance(n, int) and 0 < n < MOST_TOKENS]
        if not known:
            raise InvalidEncoder(
                f"Expected the length of a sentence in the config.json beside {path} "
                "(text_config.max_position_embeddings), found None; choose another model."
            )
        token = words.get("pad_token")
        token = token.get("content") if isinstance(token, Mapping) else token
        named = tokenizer.token_to_id(token) if isinstance(token, str) else None
        ids = (padding.get("pad_id"), named, text.get("pad_token_id"), 0)
        made = cls(
            tokenizer=tokenizer,
            length=known[0],
            padding_id=next(number for number in ids if isinstance(number, int)),
            full=length is not None or family != "clip" or padding.get("length") is not None,
            lowercase=family == "siglip",
        )
        tokenizer.enable_truncation(made.length)
        tokenizer.enable_padding(pad_id=made.padding_id, length=made.length if made.full else None)
        return made

    def encode(
        self, sentences: Sequence[str]
    ) -> tuple[Int64[np.ndarray, "text token"], Int64[np.ndarray, "text token"]]:
        """Return padded token ids, and a mask: 1 for a token."""
        texts = [text.lower() for text in sentences] if self.lowercase else list(sentences)
        encoded = self.tokenizer.encode_batch(texts)
        tokens = np.array([row.ids for row in encoded], np.int64)
        mask = np.array([row.attention_mask for row in encoded], np.int64)
        return tokens, mask


def _tokenizer(path: Path) -> Any:  # noqa: ANN401
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra(f"The tokenizer {path}") from None
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception
        raise InvalidEncoder(
            f"Expected a tokenizer.json of Hugging Face in {path}, found: {error}; choose "
            "another model."
        ) from error
