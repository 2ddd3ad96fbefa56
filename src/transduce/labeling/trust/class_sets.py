"""Sets of classes that hold the truth as often as asked, calibrated on an audit.

Split conformal prediction: the score of a class says how unlike the truth it is, and a set holds
the classes whose score is at most that of all but a few of the audited images' true classes. For an
image like those audited, the set holds the truth with the coverage asked, whatever the quality
of the probabilities; only the size of the sets depends on it.

- LAC (Sadinle, Lei and Wasserman, 2019): 1 - the probability of the class. The smallest sets.
- APS (Romano, Sesia and Candes, 2020): the probability of all likelier classes and a random part
  of its own. Sets that are larger where the image is harder.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from jaxtyping import Float32, Float64, Int

from transduce.errors import InvalidAudit, InvalidRun, InvalidSetting
from transduce.labeling.run_directory import LABELS_PARQUET, RunDirectory
from transduce.labeling.trust.audit import Audit, fingerprint, read_audit
from transduce.machine.atomic import replace_file

if TYPE_CHECKING:
    import pyarrow as pa

SETS = "sets.parquet"
MEMBERS = "classes"  # the column of a set, in every table that has one
SetMethod = Literal["lac", "aps"]

Rows = Float32[np.ndarray, "image class"]
PerImage = Float64[np.ndarray, " image"]
Scores = Float64[np.ndarray, "image class"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassSets:
    """For each image the classes that may be the true one, the likeliest first.

    Parameters
    ----------
    coverage : float
        How often a set holds the truth, for images of the run that were not audited.
    method : {"lac", "aps"}
        How classes are compared.
    threshold : float
        The largest score of a class in a set.
    labels : tuple of str
        The classes of the run.
    starts : array of int of shape (image + 1,)
        Where the set of each image starts in `classes`.
    classes : array of int
        The class indices of all sets, one after the other.
    """

    coverage: float
    method: SetMethod
    threshold: float
    labels: tuple[str, ...]
    starts: Int[np.ndarray, " bound"]
    classes: Int[np.ndarray, " member"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> tuple[str, ...]:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        members = self.classes[self.starts[row] : self.starts[row + 1]]
        return tuple(self.labels[index] for index in members)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[row] for row in range(len(self)))

    @property
    def sizes(self) -> Int[np.ndarray, " image"]:
        """How many classes each set has (image,)."""
        return np.diff(self.starts)


def prediction_sets(
    run: RunDirectory, coverage: float = 0.9, method: SetMethod = "lac"
) -> ClassSets:
    """Return for each image the classes that hold the truth with `coverage`.

    Parameters
    ----------
    run : RunDirectory
        A run with a finished audit.
    coverage : float, default=0.9
        How often a set is to hold the truth.
    method : {"lac", "aps"}, default="lac"
        "lac" for the smallest sets, "aps" for sets that grow with the difficulty of an image.

    Raises
    ------
    InvalidAudit
        Without a finished audit, with too small a one, or if too many audited images are of none
        of the classes.

    Examples
    --------
    >>> sets = prediction_sets(run, 0.9)  # doctest: +SKIP
    >>> sets[0], sets.sizes.mean()  # doctest: +SKIP
    (('cat', 'lynx'), 1.3)
    """
    if not 0.0 < coverage < 1.0:
        raise InvalidSetting(f"Expected a coverage between 0 and 1, found {coverage!r}.")
    if method not in get_args(SetMethod):
        raise InvalidSetting(f"Expected a method of {get_args(SetMethod)}, found {method!r}.")
    part = np.random.default_rng(0).random(len(run.labels))
    threshold = _threshold(run, _finished(run), coverage, method, part)
    sizes, members = [], []
    for start, block in run.probability_blocks():
        chosen = class_scores(block, method, part[start : start + len(block)]) <= threshold
        chosen[np.arange(len(block)), block.argmax(1)] = True  # which only adds coverage
        sizes.append(chosen.sum(1))
        order = np.argsort(-block, axis=1, kind="stable")
        members.append(order[np.take_along_axis(chosen, order, 1)])
    return ClassSets(
        coverage=coverage,
        method=method,
        threshold=threshold,
        labels=run.classes.labels,
        starts=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        classes=np.concatenate(members),
    )


def write_sets(run: RunDirectory, sets: ClassSets) -> Path:
    """Write sets.parquet, file_name and classes, and the column classes of labels.parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array(sets.labels, pa.string()).take(pa.array(sets.classes))
    lists = pa.ListArray.from_arrays(pa.array(sets.starts, pa.int32()), names)
    columns = {"file_name": pa.array(run.labels.file_name, pa.string()), MEMBERS: lists}
    facts = {
        "coverage": f"{sets.coverage:g}",
        "method": sets.method,
        "threshold": repr(sets.threshold),
        "fingerprint": fingerprint(run),
    }
    table = pa.table(columns).replace_schema_metadata(facts)
    path = Path(run.folder) / SETS
    _add_to_labels(Path(run.folder) / LABELS_PARQUET, lists)
    replace_file(path, lambda temporary: pq.write_table(table, temporary))
    return path


def read_sets(run: RunDirectory) -> ClassSets | None:
    """Return the sets that `write_sets` wrote; None without any, or if the labels are others.

    Raises
    ------
    InvalidRun
        If the file is damaged.
    """
    path = Path(run.folder) / SETS
    if not path.exists():
        return None
    try:
        return _read(path, run)
    except Exception as error:  # damaged parquet raises nearly anything
        raise InvalidRun(
            f"Expected the sets of classes in {path}, found {type(error).__name__}: {error}; make "
            f"them again: transduce certify {run.folder} --sets 0.9, or remove the file."
        ) from error


def _read(path: Path, run: RunDirectory) -> ClassSets | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    facts = {name.decode(): text.decode() for name, text in (table.schema.metadata or {}).items()}
    if facts.get("fingerprint") != fingerprint(run):
        return None
    lists = table[MEMBERS].combine_chunks()
    members = pc.index_in(lists.flatten(), pa.array(run.classes.labels, pa.string()))
    if members.null_count or len(lists) != len(run.labels):
        raise ValueError("the sets of another run")
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return ClassSets(
        coverage=float(facts["coverage"]),
        method="aps" if facts["method"] == "aps" else "lac",
        threshold=float(facts["threshold"]),
        labels=run.classes.labels,
        starts=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
        classes=members.to_numpy(zero_copy_only=False).astype(np.int64),
    )


def _add_to_labels(path: Path, lists: "pa.ListArray") -> None:
    """Write labels.parquet again with the column of sets, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(temporary: Path) -> None:
        start, writer = 0, None
        with pq.ParquetFile(path, pre_buffer=False) as file:
            names = [name for name in file.schema_arrow.names if name != MEMBERS]
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=names)
                part = pa.concat_arrays([lists.slice(start, len(rows))])
                rows = rows.append_column(MEMBERS, part)
                writer = writer or pq.ParquetWriter(temporary, rows.schema)
                writer.write_table(rows)
                start += len(rows)
        assert writer is not None
        writer.close()

    replace_file(path, write)


def conformal_threshold(scores: Float64[np.ndarray, " audited"], coverage: float) -> float:
    """Return the score that covers a new image with `coverage`, given those of true classes."""
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def class_scores(probabilities: Rows, method: SetMethod, part: PerImage) -> Scores:
    """Return how unlike the truth each class is (image, class), from 0 to 1.

    `part` (image,), from 0 to 1, is the random part of APS; LAC has none.
    """
    rows = probabilities.astype(np.float64)
    if method == "lac":
        return 1.0 - rows
    order = np.argsort(-rows, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(rows, order, 1), axis=1)
    scores = np.empty_like(rows)
    np.put_along_axis(scores, order, sums, 1)
    return scores - (1.0 - part)[:, np.newaxis] * rows


def _finished(run: RunDirectory) -> Audit:
    audit = read_audit(run)
    if audit is None or audit.void or not audit.complete:
        found = "none" if audit is None else audit.void or f"{len(audit.unanswered):,} not answered"
        raise InvalidAudit(
            f"Expected a finished audit of {run.folder}, found {found}; draw and answer one: "
            f"transduce review {run.folder} --audit {len(audit) if audit else 100}"
        )
    return audit


def _threshold(
    run: RunDirectory, audit: Audit, coverage: float, method: SetMethod, part: PerImage
) -> float:
    index = {label: at for at, label in enumerate(run.classes.labels)}
    truth = np.array([index.get(audit.answers[name], -1) for name in audit.file_names])
    scores = np.full(len(audit), math.inf)  # none of the classes: no set holds the truth
    for start, block in run.probability_blocks():
        inside = (audit.rows >= start) & (audit.rows < start + len(block)) & (truth >= 0)
        if inside.any():
            asked = audit.rows[inside]
            rows = class_scores(block[asked - start], method, part[asked])
            scores[inside] = rows[np.arange(len(rows)), truth[inside]]
    threshold = conformal_threshold(scores, coverage)
    if math.isinf(threshold):
        outside = int((truth < 0).sum())
        raise InvalidAudit(
            f"Expected an audit that allows a coverage of {coverage:g}, found {len(audit):,} "
            f"images, {outside:,} of them of none of the classes; audit more images, ask for less, "
            "or add the missing classes."
        )
    return threshold
