"""The likeliest classes of single images, read from labels.parquet only where they are asked."""

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from transduce.labeling.run_directory import LABELS_PARQUET, RunDirectory

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

        lists = pq.ParquetFile(self._path).read_row_group(number, columns=["probabilities"])
        column = lists.column(0).combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        rows = flat.reshape(len(self._groups[number]), -1)
        # Only the largest are sorted: with a thousand classes that is most of the time saved.
        top = np.argpartition(-rows, self._most - 1, axis=1)[:, : self._most]
        top.sort(axis=1)  # equal probabilities stay in the order of the classes
        order = np.argsort(-np.take_along_axis(rows, top, 1), axis=1, kind="stable")
        classes = np.take_along_axis(top, order, 1)
        return classes, np.take_along_axis(rows, classes, 1)
