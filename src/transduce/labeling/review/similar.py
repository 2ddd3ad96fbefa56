"""Images that look alike, and images that a few words describe, by the embeddings of the run."""

import contextlib
import threading
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders import Encoder, load_encoder
from transduce.encoders.prompts import sentences
from transduce.errors import InvalidAnswer, TransduceError
from transduce.features.store import BLOCK_ROWS, FeatureStore
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.solving.rows import StoreRows
from transduce.simplex.threads import over_slices

SAME = 0.999  # cosine of images that nobody could tell apart; different photos are below 0.995
ALIKE = 0.5  # cosine of two images of a group, after what all have in common is taken off
MOST_SAME = 24
MOST_HELD = 64_000_000  # numbers: 256 MB; beyond, a look at all images would be felt at every key


class Similarity:
    """Cosines between the images of a run, and with words."""

    def __init__(self, run: RunDirectory, row_of: Mapping[str, int]) -> None:
        self._run = run
        self._encoder: Encoder | None = None
        self._same: dict[int, list[int]] = {}
        self._loading = threading.Lock()
        first = row_of if any(run.labels.duplicate_of) else {}
        self._copies: dict[int, list[int]] = {}  # of the same content, to the byte
        for row, name in enumerate(run.labels.duplicate_of):
            if name in first:
                self._copies.setdefault(first[name], [first[name]]).append(row)
        self._first_of = {row: rows[0] for rows in self._copies.values() for row in rows}
        self._store: FeatureStore | None = None
        with contextlib.suppress(TransduceError, OSError):  # features that were deleted since
            self._store = run.store()

    def same(self, row: int) -> list[int]:
        """Return the other rows with an image that is the same, exactly or to the eye."""
        if row not in self._same:  # asked for when it is shown, and again with its answer
            self._same[row] = self._find_same(row)
        return self._same[row]

    def _find_same(self, row: int) -> list[int]:
        found = dict.fromkeys(self._copies.get(self._first_of.get(row, -1), ()))
        if self._store is not None and len(self._store) * self._store.dimension <= MOST_HELD:
            cosines = self._held @ self._held[row]
            alike = np.flatnonzero(cosines >= SAME)
            alike = alike[np.argsort(-cosines[alike], kind="stable")][: MOST_SAME + 1]
            found |= dict.fromkeys(alike.tolist())
        return [other for other in found if other != row][:MOST_SAME]

    def like(self, row: int, most: int) -> list[int]:
        """Return the row and those that look most like it, the most alike first."""
        self._check_store()
        cosines = self._cosines(self._vector(row))
        cosines[row] = np.inf
        return _largest(cosines, most)

    def described_by(self, words: str, most: int) -> list[int]:
        """Return the rows that the words describe best, by the text tower of the run's encoder.

        Raises
        ------
        InvalidAnswer
            Where the encoder cannot be had any more, or does not know the words.
        """
        self._check_store()
        try:
            with self._loading:
                self._encoder = self._encoder or self._load()
            asked = [
                sentence
                for template in self._run.settings.templates
                for sentence in sentences([words], template)
            ]
            rows = self._encoder.embed_texts(asked)
        except (TransduceError, OSError) as error:
            raise InvalidAnswer(f"Words cannot be looked for here: {error}") from error
        mean = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(0)
        return _largest(self._cosines((mean / np.linalg.norm(mean)).astype(np.float32)), most)

    def groups(self, rows: Int[np.ndarray, " row"]) -> list[list[int]]:
        """Return the rows in groups that look alike, the largest first; single ones together."""
        if self._store is None or len(rows) < 2:
            return [rows.tolist()] if len(rows) else []
        units = self._store.take(rows)
        units -= units.mean(0)  # what all have in common says nothing about who is alike
        units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
        near = units @ units.T >= ALIKE
        groups: list[list[int]] = []
        left, counts = np.ones(len(rows), bool), near.sum(1)
        while left.any():
            group = near[int((counts * left).argmax())] & left
            groups.append(rows[group].tolist())
            counts -= near[:, group].sum(1)
            left &= ~group
        single = [group[0] for group in groups if len(group) == 1]
        return [group for group in groups if len(group) > 1] + ([single] if single else [])

    def _check_store(self) -> None:
        if self._store is None:
            raise InvalidAnswer(
                "Expected the features of the run, found none; images cannot be compared."
            )

    def _vector(self, row: int) -> Float32[np.ndarray, " feature"]:
        assert self._store is not None
        vector = self._store.take(np.array([row]))[0]
        unit: Float32[np.ndarray, " feature"] = vector / np.linalg.norm(vector)
        return unit

    @cached_property
    def _held(self) -> Float32[np.ndarray, "image feature"]:
        """All rows as unit vectors, read once."""
        assert self._store is not None
        return np.concatenate([block for _, block in self._store.unit_blocks()])

    def _cosines(self, vector: Float32[np.ndarray, " feature"]) -> Float32[np.ndarray, " image"]:
        assert self._store is not None
        rows = StoreRows.of(self._store, np.arange(len(self._store)))
        cosines = np.empty(len(rows), np.float32)

        def work(part: slice) -> None:
            cosines[part] = rows.take(part) @ vector

        starts = range(0, len(rows), BLOCK_ROWS)
        over_slices(work, [slice(start, start + BLOCK_ROWS) for start in starts])
        return cosines

    def _load(self) -> Encoder:
        settings, identity = self._run.settings, self._run.identity
        with contextlib.chdir(settings.folder or "."):  # a folder of weights may be relative
            # Nothing is downloaded for a search: a review must not fall silent for minutes.
            encoder = load_encoder(settings.encoder or identity.encoder, offline=True)
        if encoder.identity != identity:
            raise InvalidAnswer(
                f"Expected the encoder that made the features ({identity.encoder}), found "
                f"{encoder.identity.encoder} with other weights; their numbers do not compare."
            )
        return encoder


def _largest(values: Float32[np.ndarray, " image"], most: int) -> list[int]:
    order: list[int] = np.argsort(-values, kind="stable")[:most].tolist()
    return order
