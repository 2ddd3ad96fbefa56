"""Reading and writing the single files of a run directory."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, Int

from transduce.atomic import replace_file, replace_text
from transduce.encoders.class_names import ClassNames
from transduce.errors import InvalidFile
from transduce.features.layout import Skip
from transduce.labeling.table import UNKNOWN, UNKNOWN_LABEL, LabelTable

if TYPE_CHECKING:
    import pyarrow as pa

CSV_COLUMNS = (
    "file_name", "label", "score", "margin", "entropy", "zero_shot_label", "zero_shot_score",
    "changed", "needs_review", "reason", "duplicate_of",
)  # fmt: skip
ROWS_AT_A_TIME = 8192


def names_of(places: Int[np.ndarray, " image"], classes: ClassNames) -> list[str]:
    names = (*classes.labels, UNKNOWN_LABEL)  # UNKNOWN is -1: the last
    return [names[place] for place in places]


def places_of(names: Sequence[str | None], classes: ClassNames) -> Int[np.ndarray, " image"]:
    places: Mapping[str | None, int] = {name: place for place, name in enumerate(classes.labels)}
    return np.array([places.get(name, UNKNOWN) for name in names], dtype=np.int64)


def write_csv(path: Path, table: LabelTable, classes: ClassNames) -> None:
    columns = {name: _cells(getattr(table, name), name, classes) for name in CSV_COLUMNS}

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(CSV_COLUMNS)
            writer.writerows(zip(*columns.values(), strict=True))

    replace_file(path, write)


def _cells(values: np.ndarray | tuple[str, ...], name: str, classes: ClassNames) -> Sequence[str]:
    if not isinstance(values, np.ndarray):
        return values
    if name.endswith("label"):
        return names_of(values, classes)
    if values.dtype == np.bool_:
        return ["true" if value else "false" for value in values]
    return [f"{value:.6f}" for value in values]


def write_parquet(
    path: Path,
    table: LabelTable,
    classes: ClassNames,
    probabilities: Float32[np.ndarray, "image class"],
) -> None:
    """Row group by row group, so that memory does not grow with the number of images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _columns(table, classes)

    def write(temporary: Path) -> None:
        writer = None
        for start in range(0, len(table), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            part = {name: pa.array(values[rows]) for name, values in columns.items()}
            flat = pa.array(np.ascontiguousarray(probabilities[rows]).reshape(-1))
            part["probabilities"] = pa.FixedSizeListArray.from_arrays(flat, len(classes))
            if writer is None:
                writer = pq.ParquetWriter(temporary, pa.table(part).schema)
            writer.write_table(pa.table(part))
        assert writer is not None
        writer.close()

    replace_file(path, write)


def _columns(table: LabelTable, classes: ClassNames) -> "dict[str, pa.Array]":
    import pyarrow as pa

    columns = {}
    for name in LabelTable.__slots__:
        values = getattr(table, name)
        if name == "truth":
            if values is not None:
                texts = [None if place == UNKNOWN else classes.labels[place] for place in values]
                columns[name] = pa.array(texts, pa.string())
        elif name.endswith("label"):
            columns[name] = pa.array(names_of(values, classes), pa.string())
        elif isinstance(values, np.ndarray):
            columns[name] = pa.array(values)
        else:
            columns[name] = pa.array(values, pa.string())
    return columns


def read_table(path: Path, classes: ClassNames) -> LabelTable:
    import pyarrow.parquet as pq

    found = pq.read_table(path, columns=_stored(path))
    columns: dict[str, Any] = {}
    for name in found.column_names:
        values = found[name]
        if name.endswith("label") or name == "truth":
            columns[name] = places_of(values.to_pylist(), classes)
        elif str(values.type) == "string":
            columns[name] = tuple(values.to_pylist())
        else:
            columns[name] = values.to_numpy()
    return LabelTable(**columns)


def _stored(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    names = pq.read_schema(path).names
    return [name for name in LabelTable.__slots__ if name in names]


def read_probabilities(path: Path) -> Float32[np.ndarray, "image class"]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    parts = []
    for group in range(file.num_row_groups):
        lists = file.read_row_group(group, columns=["probabilities"])["probabilities"]
        for chunk in lists.chunks:
            width = chunk.type.list_size
            parts.append(chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width))
    rows: Float32[np.ndarray, "image class"] = np.concatenate(parts)
    return rows


def write_skipped(path: Path, skipped: Sequence[Skip]) -> None:
    replace_text(path, _csv(Skip.__slots__, (asdict(skip) for skip in skipped)))


def read_skipped(path: Path) -> list[Skip]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Skip(**row) for row in csv.DictReader(file)]


def _csv(columns: Sequence[str], rows: Iterator[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_corrections(path: Path) -> dict[str, str]:
    """file_name to label; of a file named twice the last line counts. Empty if there is none."""
    return read_labeled(path) if path.exists() else {}


def read_labeled(path: Path) -> dict[str, str]:
    """A CSV with a file_name column and a label (or truth, class) column."""
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
            return {row["file_name"]: (row[column] or "").strip() for row in reader}
    except FileNotFoundError:
        raise InvalidFile(f"Expected a CSV of labels, found no {path}; check the path.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(f"Expected a CSV of labels in UTF-8, found {path}: {error}.") from None


def write_corrections(path: Path, corrections: Mapping[str, str]) -> None:
    rows = ({"file_name": name, "label": label} for name, label in corrections.items())
    replace_text(path, _csv(("file_name", "label"), rows))
