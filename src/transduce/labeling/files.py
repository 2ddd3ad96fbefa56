"""Reading and writing the single files of a run directory."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders.class_names import ClassNames
from transduce.errors import InvalidFile, InvalidRun
from transduce.features.layout import Skip
from transduce.labeling.problem import BestClasses, Posterior, dense, part_of
from transduce.labeling.settings import UNKNOWN, indices_of, label_names
from transduce.labeling.table import LabelTable, strangeness
from transduce.machine.atomic import cell_text, replace_csv, replace_file

if TYPE_CHECKING:
    import pyarrow as pa

CSV_COLUMNS = (
    "file_name",
    "label",
    "score",
    "margin",
    "entropy",
    "doubt",
    "zero_shot_label",
    "zero_shot_score",
    "changed",
    "needs_review",
    "reason",
    "duplicate_of",
)
ROWS_AT_A_TIME = 8192
ENTRIES_AT_A_TIME = 1 << 24  # image x class of a block of probabilities
PROBABILITIES, BEST_CLASSES, BEST_PROBABILITIES = (
    "probabilities",
    "best_classes",
    "best_probabilities",
)
FEW_TEXTS = ("label", "zero_shot_label", "truth", "reason")  # columns of texts that come again
BETWEEN_CLASSES = "; "  # of a set, in a cell of a CSV
Extra = np.ndarray | tuple[tuple[str, ...], ...]  # a flag, or a set of class names, for each image
NOTHING: Mapping[str, Extra] = MappingProxyType({})
Block = tuple[int, Posterior]  # the number of its first row, and the rows
MODEL_FORMAT = "transduce-model"


def labels_of(indices: Int[np.ndarray, " image"], classes: ClassNames) -> list[str]:
    """Return the label of each class index, `unknown` for UNKNOWN."""
    names = label_names(classes)
    return [names[index] for index in indices]


def write_labels_csv(
    path: Path, table: LabelTable, classes: ClassNames, more: Mapping[str, Extra] = NOTHING
) -> None:
    """Write labels.csv: a row per image; `more` are columns after the usual ones.

    Some rows at a time: the words of all of them would take half a kilobyte an image.
    """

    def rows() -> Iterator[tuple[str, ...]]:
        for start in range(0, len(table), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            columns = [_cells(getattr(table, name)[part], name, classes) for name in CSV_COLUMNS]
            columns += [extra_cells(values[part]) for values in more.values()]
            yield from zip(*columns, strict=True)

    replace_csv(path, (*CSV_COLUMNS, *more), rows())


def extra_cells(values: Extra) -> list[str]:
    """Return the cells of a column that came after the run: true or false, or the classes."""
    if isinstance(values, np.ndarray):
        return ["true" if value else "false" for value in values]
    return [BETWEEN_CLASSES.join(members) for members in values]


def _cells(values: np.ndarray | tuple[str, ...], name: str, classes: ClassNames) -> Sequence[str]:
    if not isinstance(values, np.ndarray):
        return values
    if name.endswith("label"):
        return labels_of(values, classes)
    if values.dtype == np.bool_:
        return ["true" if value else "false" for value in values]
    return [f"{value:.6f}" for value in values.tolist()]


def write_labels_parquet(
    path: Path,
    table: LabelTable,
    classes: ClassNames,
    probabilities: Posterior,
) -> None:
    """Write labels.parquet row group by row group, so that memory stays flat.

    Where only the best classes are kept, their columns are best_classes (indices) and
    best_probabilities instead of probabilities.
    """
    starts = range(0, len(table), ROWS_AT_A_TIME)
    blocks = (
        (start, part_of(probabilities, slice(start, start + ROWS_AT_A_TIME))) for start in starts
    )
    write_label_blocks(path, table, classes, blocks)


def write_label_blocks(
    path: Path,
    table: LabelTable,
    classes: ClassNames,
    blocks: Iterable[Block],
    more: Mapping[str, Extra] = NOTHING,
) -> None:
    """Write labels.parquet with the probabilities of `blocks`, which follow each other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(temporary: Path) -> None:
        writer = None
        for start, block in blocks:
            rows = slice(start, start + len(block))
            part = table_columns(table, classes, rows)
            for name, values in more.items():
                kind = None if isinstance(values, np.ndarray) else pa.list_(pa.string())
                part[name] = pa.array(values[rows], kind)
            part |= {name: _lists(block) for name, block in _posterior(block)}
            if writer is None:
                writer = pq.ParquetWriter(temporary, pa.table(part).schema)
            writer.write_table(pa.table(part))
        assert writer is not None
        writer.close()

    replace_file(path, write)


def _posterior(block: Posterior) -> list[tuple[str, np.ndarray]]:
    if isinstance(block, BestClasses):
        return [(BEST_CLASSES, block.classes), (BEST_PROBABILITIES, block.probabilities)]
    return [(PROBABILITIES, block)]


def _lists(block: np.ndarray) -> "pa.Array":
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(block).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, block.shape[1])


def table_columns(
    table: LabelTable, classes: ClassNames, rows: slice = slice(None)
) -> "dict[str, pa.Array]":
    """Return the columns of labels.parquet, without the probabilities, of some rows."""
    import pyarrow as pa

    columns = {}
    for name in LabelTable.__slots__:
        column = getattr(table, name)
        values: Any = None if column is None else column[rows]
        if name == "truth":
            if values is not None:
                texts = [None if index == UNKNOWN else classes.labels[index] for index in values]
                columns[name] = pa.array(texts, pa.string())
        elif name.endswith("label"):
            columns[name] = pa.array(labels_of(values, classes), pa.string())
        elif isinstance(values, np.ndarray):
            columns[name] = pa.array(values)
        else:
            columns[name] = pa.array(values, pa.string())
    return columns


def read_labels(path: Path, classes: ClassNames) -> LabelTable:
    """Return the table of labels.parquet."""
    import pyarrow.parquet as pq

    stored = pq.read_schema(path).names
    wanted = [name for name in LabelTable.__slots__ if name in stored]
    few = [name for name in FEW_TEXTS if name in stored]
    data = pq.read_table(path, columns=wanted, read_dictionary=few)
    columns: dict[str, Any] = {}
    for name in data.column_names:
        values = data[name]
        if name in FEW_TEXTS:
            texts, at = _dictionary(values)
            if name == "reason":
                columns[name] = tuple(texts[index] for index in at.tolist())
            else:
                columns[name] = indices_of(texts, classes)[at]
        elif str(values.type) == "string":
            columns[name] = tuple(values.to_pylist())
        else:
            columns[name] = values.to_numpy()
    if "doubt" not in columns:  # runs of version 0.1
        columns["doubt"] = 1.0 - columns["score"]
    if "strangeness" not in columns:
        columns["strangeness"] = strangeness(columns["distance"], 1.0 - columns["zero_shot_score"])
    return LabelTable(**columns)


def _dictionary(
    values: "pa.ChunkedArray",
) -> tuple[list[str | None], Int[np.ndarray, " image"]]:
    """The texts of a column, each once and None, and which of them each row has."""
    one = values.unify_dictionaries().combine_chunks()
    parts = one.chunks if hasattr(one, "chunks") else [one]
    texts: list[str | None] = parts[0].dictionary.to_pylist() if parts else []
    at = [part.indices.fill_null(len(texts)).to_numpy() for part in parts]
    return [*texts, None], np.concatenate(at) if at else np.zeros(0, np.int64)


def probability_blocks(
    path: Path, n_classes: int
) -> Iterator[tuple[int, Float32[np.ndarray, "row class"]]]:
    """Yield (first row, probabilities) of labels.parquet in order, in blocks of bounded size."""
    import pyarrow.parquet as pq

    start, file = 0, pq.ParquetFile(path, pre_buffer=False)  # else the whole file is in memory
    best = BEST_CLASSES in file.schema_arrow.names
    columns = [BEST_CLASSES, BEST_PROBABILITIES] if best else [PROBABILITIES]
    size = max(1, min(ROWS_AT_A_TIME, ENTRIES_AT_A_TIME // n_classes))
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(size, row_groups=[group], columns=columns):
            blocks = [_array(batch.column(name)) for name in columns]
            yield start, dense(blocks[0], blocks[1], n_classes) if best else blocks[0]
            start += len(batch)


def _array(lists: "pa.Array") -> np.ndarray:
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, lists.type.list_size)


def write_skipped(path: Path, skipped: Sequence[Skip]) -> None:
    """Write skipped.csv: what could not be read."""
    replace_csv(path, Skip.__slots__, map(astuple, skipped))


def read_labeled(path: Path) -> dict[str, str]:
    """Return the label of each file of a CSV with columns file_name and label (or truth, class).

    Of a file named twice the last line counts.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            column = next((name for name in ("label", "truth", "class") if name in header), None)
            if "file_name" not in header or column is None:
                raise InvalidFile(
                    f"Expected columns file_name and label in {path}, found "
                    f"{', '.join(header) or 'nothing'}; write a header with these names."
                )
            return {
                cell_text(row["file_name"] or ""): cell_text((row[column] or "").strip())
                for row in reader
            }
    except FileNotFoundError:
        raise InvalidFile(f"Expected a CSV of labels, found no {path}; check the path.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(f"Expected a CSV of labels in UTF-8, found {path}: {error}.") from None


def write_corrections(path: Path, corrections: Mapping[str, str]) -> None:
    """Write reviewed.csv: the label of each corrected image."""
    replace_csv(path, ("file_name", "label"), corrections.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModels:
    """model.safetensors: the embeddings of the classes, the shots, and the fit of each batch."""

    method: str
    temperature: float
    class_embeddings: Float32[np.ndarray, "class feature"]
    support_embeddings: Float32[np.ndarray, "shot feature"] | None = None
    support_labels: Int[np.ndarray, " shot"] | None = None
    support_view: Float32[np.ndarray, "shot view"] | None = None
    batches: tuple[Mapping[str, np.ndarray], ...] = ()  # the arrays of each fitted model

    def write(self, path: Path) -> None:
        """Write the arrays as safetensors."""
        from safetensors.numpy import save_file

        arrays = {"class_embeddings": self.class_embeddings}
        if self.support_embeddings is not None and self.support_labels is not None:
            arrays["support_embeddings"] = self.support_embeddings
            arrays["support_labels"] = self.support_labels
            if self.support_view is not None:
                arrays["support_view"] = self.support_view
        for number, batch in enumerate(self.batches):
            arrays |= {f"batch_{number}.{name}": array for name, array in batch.items()}
        about = {
            "format": MODEL_FORMAT,
            "method": self.method,
            "temperature": repr(self.temperature),
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}

        def write(temporary: Path) -> None:
            temporary.touch()
            usual = temporary.stat().st_mode  # safetensors would make it its owner's alone
            save_file(arrays, temporary, metadata=about)
            temporary.chmod(usual)
            _sort_header(temporary)

        replace_file(path, write)

    @classmethod
    def read(cls, path: Path) -> "BatchModels":
        """Return the arrays of a file that `write` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, json.JSONDecodeError, ValueError, TypeError) as error:
            raise InvalidRun(f"Expected a model at {path}, found {error}.") from None
        if about.get("format") != MODEL_FORMAT:
            raise InvalidRun(f"Expected a {MODEL_FORMAT} file, found another at {path}.")
        try:
            return cls(
                method=about["method"],
                temperature=float(about["temperature"]),
                class_embeddings=arrays["class_embeddings"],
                support_embeddings=arrays.get("support_embeddings"),
                support_labels=arrays.get("support_labels"),
                support_view=arrays.get("support_view"),
                batches=_batches(arrays),
            )
        except (KeyError, ValueError) as error:
            raise InvalidRun(f"Expected a whole model at {path}, found none of {error}.") from None


def _sort_header(path: Path) -> None:
    """Put the keys of a safetensors header in order: its writer shuffles them at every run."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        in_order = {name: dict(sorted(header[name].items())) for name in sorted(header)}
        text = json.dumps(in_order, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:
            file.seek(8)
            file.write(text.ljust(length))  # the format pads with spaces


def _batches(arrays: Mapping[str, np.ndarray]) -> tuple[Mapping[str, np.ndarray], ...]:
    batches: dict[int, dict[str, np.ndarray]] = {}
    for key, array in arrays.items():
        batch, dot, name = key.partition(".")
        if dot:
            batches.setdefault(int(batch.removeprefix("batch_")), {})[name] = array
    return tuple(batches[number] for number in sorted(batches))
