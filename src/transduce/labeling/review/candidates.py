"""The likeliest classes of single images, read from labels.parquet only where they are asked."""

from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Int

from transduce.labeling.files import BEST_CLASSES, BEST_PROBABILITIES, PROBABILITIES
from transduce.labeling.run_directory import LABELS_PARQUET, RunDirectory
from transduce.labeling.trust.class_sets import read_sets

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Ranked = tuple[Int[np.ndarray, "row candidate"], Float32[np.ndarray, "row candidate"]]


class Candidates:
    """Looks the `most` likeliest classes of a row up; a row group is read once and kept small."""

    def __init__(self, run: RunDirectory, most: int) -> None:
        import pyarrow.parquet as pq

        self._path: Path = run.folder / LABELS_PARQUET
        self._most = min(most, len(run.classes))
        described = pq.read_metadata(self._path)
        sizes = [described.row_group(i).num_rows for i in range(described.num_row_groups)]
        self._groups = [range(*ends) for ends in pairwise(accumulate(sizes, initial=0))]
        self._known: dict[int, Ranked] = {}

    def of(self, row: int) -> list[tuple[int, float]]:
        """Return the likeliest classes of a row with their probabilities, the likeliest first."""
        number = next(i for i, rows in enumerate(self._groups) if row in rows)
        if number not in self._known:
            self._known[number] = self._read(number)
        classes, shares = self._known[number]
        at = row - self._groups[number].start
        return list(zip(classes[at].tolist(), shares[at].tolist(), strict=True))

    def _read(self, number: int) -> Ranked:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self._path)
        if BEST_CLASSES in file.schema_arrow.names:  # a large run keeps these alone
            known, rows = self._columns(file, number, [BEST_CLASSES, BEST_PROBABILITIES])
        else:
            (rows,) = self._columns(file, number, [PROBABILITIES])
            known = None
        # Only the largest are sorted: with a thousand classes that is most of the time saved.
        most = min(self._most, rows.shape[1])
        top = np.argpartition(-rows, most - 1, axis=1)[:, :most]
        top.sort(axis=1)  # equal probabilities stay in the order of the classes
        order = np.argsort(-np.take_along_axis(rows, top, 1), axis=1, kind="stable")
        best = np.take_along_axis(top, order, 1)
        shares = np.take_along_axis(rows, best, 1)
        return best if known is None else np.take_along_axis(known, best, 1), shares

    def _columns(
        self, file: "pq.ParquetFile", number: int, names: list[str]
    ) -> list[Float32[np.ndarray, "row class"]]:
        lists = file.read_row_group(number, columns=names)
        size = len(self._groups[number])
        flat = [lists.column(name).combine_chunks().flatten() for name in names]
        return [values.to_numpy(zero_copy_only=False).reshape(size, -1) for values in flat]


class GivenSets:
    """The sets of classes that `transduce certify --sets` wrote, if it did."""

    def __init__(self, run: RunDirectory) -> None:
        sets = read_sets(run)
        self.coverage = "" if sets is None else f"{sets.coverage:g}"
        self._sets: dict[str, tuple[str, ...]] = {}
        if sets is not None:
            self._sets = dict(zip(run.labels.file_name, sets, strict=True))

    def of(self, file_name: str) -> list[str]:
        """Return the classes that hold the truth of an image with the coverage; empty for none."""
        return list(self._sets.get(file_name, ()))
