"""What the page needs of all class probabilities, read block by block: memory stays flat."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.labeling.run_directory import LABELS_PARQUET

ROWS_AT_A_TIME = 8192
MOST_CLASSES = 2000  # beyond, the table of pairs would not fit; the section is left out

Candidates = tuple[tuple[int, float], ...]  # class numbers with their probability, likeliest first


@dataclass(frozen=True, slots=True)
class Pairs:
    """`shared[a, b]` is the mean probability of class b over the images labeled a."""

    shared: Float[np.ndarray, "class class"]

    def most_confusable(self, most: int, least_share: float) -> list[tuple[int, int, float]]:
        """The unordered pairs that share most, with the larger of their two shares."""
        both = np.maximum(self.shared, self.shared.T)
        first, second = np.triu_indices(len(both), 1)
        shares = both[first, second]
        order = np.argsort(-shares, kind="stable")[:most]
        return [
            (int(first[i]), int(second[i]), float(shares[i]))
            for i in order
            if shares[i] >= least_share
        ]


def blocks(folder: Path) -> Iterator[tuple[int, Float32[np.ndarray, "row class"]]]:
    """The probabilities in order, each block with the number of its first row."""
    import pyarrow.parquet as pq

    start = 0
    file = pq.ParquetFile(folder / LABELS_PARQUET)
    for batch in file.iter_batches(ROWS_AT_A_TIME, columns=["probabilities"]):
        lists = batch.column(0)
        flat = lists.flatten().to_numpy(zero_copy_only=False)
        yield start, flat.reshape(-1, lists.type.list_size)
        start += len(lists)


def read(
    folder: Path,
    labels: Int[np.ndarray, " image"],
    classes: int,
    rows: Iterable[int],
    candidates: int,
) -> tuple[Mapping[int, Candidates], Pairs | None]:
    """The likeliest classes of each of `rows`, and which classes share probability."""
    wanted = np.unique(np.fromiter(rows, dtype=np.int64))
    found: dict[int, Candidates] = {}
    keep_pairs = classes <= MOST_CLASSES
    sums = np.zeros((classes, classes)) if keep_pairs else np.zeros((0, 0))
    for start, block in blocks(folder):
        here = wanted[(wanted >= start) & (wanted < start + len(block))]
        found |= {int(row): likeliest(block[row - start], candidates) for row in here}
        if keep_pairs:
            given = labels[start : start + len(block)]
            for place in np.unique(given[given >= 0]):
                sums[place] += block[given == place].sum(0, dtype=np.float64)
    if not keep_pairs:
        return found, None
    totals = np.bincount(labels[labels >= 0], minlength=classes)
    return found, Pairs(sums / np.maximum(totals, 1)[:, None])


def likeliest(probabilities: Float32[np.ndarray, " class"], most: int) -> Candidates:
    order = np.argsort(-probabilities, kind="stable")[:most]
    return tuple((int(place), float(probabilities[place])) for place in order)
