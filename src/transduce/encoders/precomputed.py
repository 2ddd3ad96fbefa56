"""`precomputed:STORE`: pictures embedded before, sentences from a file; no model at all.

The pictures' features are in the store and are read by whoever opens it; here are the store's
identity (its meta.json) and the embeddings of sentences, from STORE/texts.npz or, as
`precomputed:STORE,TEXTS`, from another file:

    texts.npz             arrays "sentences" (text) and "embeddings" (one row each)
    texts.npy, texts.txt  the rows, and beside them the sentences, one a line
"""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy.typing import ArrayLike

from transduce.encoders.encoder import Identity
from transduce.encoders.preprocessing import Preprocessing
from transduce.errors import InvalidEncoder, MissingWeights, TransduceError

META = "meta.json"
TEXTS = "texts.npz"


@dataclass(frozen=True)
class PrecomputedEncoder:
    """Sentences are looked up, letter by letter; pictures must come from the store."""

    identity: Identity
    texts: Path

    @property
    def preprocessing(self) -> Preprocessing:
        raise self._no_pictures()

    def embed_images(
        self, pixels: Float32[np.ndarray, "image 3 height width"]
    ) -> Float32[np.ndarray, "image feature"]:
        raise self._no_pictures()

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
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

    def _no_pictures(self) -> TransduceError:
        return InvalidEncoder(
            f"Expected features in the store of {self.identity.encoder}, found pictures to embed; "
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
        lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1, keepdims=True)
        wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if len(wrong):
            raise InvalidEncoder(
                f"Expected vectors with a direction in {self.texts}, found only zeros, NaN or "
                f"infinity for {sentences[wrong[0]]!r}; make them again."
            )
        return sentences, (embeddings / lengths).astype(np.float32)


def load_precomputed(body: str) -> PrecomputedEncoder:
    """The encoder that `precomputed:` + `body` names."""
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
    """A texts.npz that `load_precomputed` reads."""
    rows = np.asarray(embeddings, np.float32)
    if rows.ndim != 2 or len(rows) != len(sentences):
        raise InvalidEncoder(
            f"Expected a row for each of {len(sentences)} sentences, found shape {rows.shape}."
        )
    np.savez(path, sentences=np.array(list(sentences), dtype=np.str_), embeddings=rows)


def _read_identity(path: Path) -> Identity:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        found: dict[str, Any] = contents["identity"]
        return Identity(**{field.name: found[field.name] for field in fields(Identity)})
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InvalidEncoder(
            f"Expected a feature store with the identity of its encoder in {path}, found "
            f"{type(error).__name__}: {error}; make one with: transduce embed"
        ) from error


def _read_texts(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        if path.suffix == ".npy":
            lines = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
            return lines, np.load(path, allow_pickle=False)
        with np.load(path, allow_pickle=False) as arrays:
            return [str(sentence) for sentence in arrays["sentences"]], arrays["embeddings"]
    except (OSError, KeyError, ValueError, AttributeError) as error:
        raise InvalidEncoder(
            f'Expected "sentences" and "embeddings" in {path}, found {type(error).__name__}: '
            f"{error}; write it with transduce.encoders.precomputed.write_texts."
        ) from error
