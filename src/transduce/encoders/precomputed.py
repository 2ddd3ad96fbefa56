"""`precomputed:STORE`: images embedded before, sentences from a file; no model at all.

The images' features are in the store and are read by whoever opens it; here are the store's
identity (its meta.json) and the embeddings of sentences, from STORE/texts.npz or, as
`precomputed:STORE,TEXTS`, from another file:

    texts.npz             arrays "sentences" (text) and "embeddings" (one row each)
    texts.npy, texts.txt  the rows, and beside them the sentences, one a line
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy.typing import ArrayLike

from transduce import validation
from transduce.encoders.encoder import (
    Encoder,
    Identity,
    ImageRows,
    LoadSettings,
    Pixels,
    Preprocessing,
)
from transduce.errors import InvalidEncoder, MissingWeights, TransduceError
from transduce.machine.atomic import read_json

META = "meta.json"
TEXTS = "texts.npz"


class PrecomputedEncoder(Encoder):
    """Looks sentences up, letter by letter; images must come from the store."""

    def __init__(self, identity: Identity, texts: Path) -> None:
        self._identity = identity
        self.texts = texts

    @property
    def identity(self) -> Identity:
        """The encoder that made the store."""
        return self._identity

    @property
    def preprocessing(self) -> Preprocessing:
        """Raise `InvalidEncoder`: there is no model."""
        raise self._no_images()

    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Raise `InvalidEncoder`: there is no model."""
        raise self._no_images()

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Return the rows of the sentences in the file."""
        missing = [sentence for sentence in sentences if sentence not in self._rows]
        if missing:
            near = difflib.get_close_matches(missing[0], self._rows, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidEncoder(
                f"Expected the embeddings of all sentences in {self.texts}, found none of "
                f"{len(missing)}, such as {missing[0]!r}{hint} Add them, or use an encoder."
            )
        table, rows = self._table, self._rows
        if not sentences:
            return np.zeros((0, self.identity.dimension), np.float32)
        return np.stack([table[rows[sentence]] for sentence in sentences])

    def _no_images(self) -> TransduceError:
        return InvalidEncoder(
            f"Expected features in the store of {self.identity.encoder}, found images to embed; "
            "embed them with that encoder: transduce embed --encoder ..."
        )

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {sentence: row for row, sentence in enumerate(self._contents[0])}

    @property
    def _table(self) -> Float32[np.ndarray, "text feature"]:
        return self._contents[1]

    @cached_property
    def _contents(self) -> tuple[list[str], Float32[np.ndarray, "text feature"]]:
        sentences, embeddings = _read_texts(self.texts)
        expected = (len(sentences), self.identity.dimension)
        if embeddings.shape != expected:
            raise InvalidEncoder(
                f"Expected embeddings of shape {expected} in {self.texts}, for its sentences and "
                f"the store of {self.identity.encoder}, found {embeddings.shape}; "
                "were they made by that encoder?"
            )
        unit = validation.unit_rows(
            str(self.texts),
            embeddings.astype(np.float64),  # rounded once, at the end
            error=InvalidEncoder,
            row_name=lambda row: repr(sentences[row]),
        )
        return sentences, unit.astype(np.float32)


def load_precomputed(body: str, settings: LoadSettings) -> PrecomputedEncoder:
    """Return the encoder that `precomputed:` + `body` names."""
    store_name, _, texts_name = body.partition(",")
    store = Path(store_name).expanduser()
    texts = Path(texts_name).expanduser() if texts_name else store / TEXTS
    identity = _read_identity(store / META)
    if not texts.is_file():
        raise MissingWeights(
            f"Expected the embeddings of sentences in {texts}, found no such file; name one: "
            f"precomputed:{store},TEXTS.npz"
        )
    return PrecomputedEncoder(identity, texts)


def write_texts(path: Path, sentences: Sequence[str], embeddings: ArrayLike) -> None:
    """Write a texts.npz that `load_precomputed` reads."""
    rows = np.asarray(embeddings, np.float32)
    if rows.ndim != 2 or len(rows) != len(sentences):
        raise InvalidEncoder(
            f"Expected a row for each of {len(sentences)} sentences, found shape {rows.shape}."
        )
    np.savez(path, sentences=np.array(list(sentences), dtype=np.str_), embeddings=rows)


@dataclass(frozen=True, slots=True)
class _Meta:
    """What is read of a store's meta.json."""

    identity: Identity


def _read_identity(path: Path) -> Identity:
    try:
        return read_json(path, _Meta, error=InvalidEncoder).identity
    except InvalidEncoder as error:
        raise InvalidEncoder(f"{error} Make a feature store with: transduce embed") from None


def _read_texts(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        if path.suffix == ".npy":
            lines = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
            return lines, np.load(path, allow_pickle=False)
        with np.load(path, allow_pickle=False) as arrays:
            return [str(sentence) for sentence in arrays["sentences"]], arrays["embeddings"]
    except Exception as error:  # damaged archives raise nearly anything
        raise InvalidEncoder(
            f'Expected "sentences" and "embeddings" in {path}, found {type(error).__name__}: '
            f"{error}; write it with transduce.encoders.precomputed.write_texts."
        ) from error
