"""A tokenizer of a closed vocabulary: an id for each word, unknown words refused.

Its tokenizer.json: {"about": "what the encoder was trained on", "words": {"group": [word, ...]}}.
Ids count from 1 through the groups in order; 0 is padding.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from transduce.encoders.tokenizers import TextSettings
from transduce.errors import InvalidEncoder, TransduceError, some_of

WORD = re.compile(r"[^\W_]+")
MOST_WORDS_NAMED = 10


class UnknownWords(TransduceError, ValueError):
    """A sentence has words outside the vocabulary of the encoder."""

    def __init__(
        self, words: Sequence[str], about: str, known: Mapping[str, Sequence[str]]
    ) -> None:
        self.words = tuple(words)
        shown = some_of([repr(word) for word in words], MOST_WORDS_NAMED)
        groups = "".join(f"\n  {group}: {', '.join(entries)}" for group, entries in known.items())
        super().__init__(
            f"Expected words this encoder knows, found {shown}; for photographs leave --encoder "
            f"out, which takes clip (pip install transduce is all it needs). {about} "
            f"It knows:{groups}"
        )


@dataclass(frozen=True)
class WordTokenizer:
    """Words without case and punctuation to ids; an unknown word is refused, never guessed."""

    about: str
    groups: Mapping[str, Sequence[str]]
    context_length: int

    @classmethod
    def read(cls, path: Path, settings: TextSettings) -> "WordTokenizer":
        """Read a tokenizer.json."""
        try:
            contents = json.loads(path.read_text(encoding="utf-8"))
            groups = {str(group): list(words) for group, words in contents["words"].items()}
            return cls(str(contents["about"]), groups, settings.context_length)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidEncoder(
                f'Expected {{"about": ..., "words": {{group: [word, ...]}}}} in {path}, found '
                f"{type(error).__name__}: {error}; export the model again."
            ) from error

    def write(self, path: Path) -> None:
        """Write a tokenizer.json."""
        contents = {"about": self.about, "words": self.groups}
        path.write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")

    @property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: number for number, word in enumerate(self._words(), start=1)}

    def encode(
        self, sentences: Sequence[str]
    ) -> tuple[Int64[np.ndarray, "text token"], Int64[np.ndarray, "text token"]]:
        """Return token ids padded to the context length, and a mask: 1 for a token."""
        ids = self.ids
        rows = [WORD.findall(sentence.lower()) for sentence in sentences]
        unknown = dict.fromkeys(word for row in rows for word in row if word not in ids)
        empty = [sentence for sentence, row in zip(sentences, rows, strict=True) if not row]
        if unknown or empty:
            raise UnknownWords([*unknown, *empty], self.about, self.groups)
        tokens = np.zeros((len(rows), self.context_length), np.int64)
        for tokens_row, row in zip(tokens, rows, strict=True):
            kept = [ids[word] for word in row][: self.context_length]
            tokens_row[: len(kept)] = kept
        return tokens, (tokens > 0).astype(np.int64)

    def _words(self) -> Iterator[str]:
        for words in self.groups.values():
            yield from words
