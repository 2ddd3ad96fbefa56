"""Read suites: those that come with the library by name, others by the path of their TOML."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from transduce.benchmark.episodes.protocol import protocol_from_json
from transduce.benchmark.metrics import METRICS
from transduce.benchmark.run import check_settings
from transduce.benchmark.suite import AVERAGE, Column, MethodRow, PaperNumbers, Suite, Table
from transduce.errors import InvalidFile, InvalidSetting, TransduceError, UnknownName
from transduce.machine.atomic import from_plain
from transduce.methods import METHODS

FOLDER = Path(__file__).parent / "suites"
EVERY = "every"
SECTIONS = {"probability": "probabilities", "embedding": "embeddings"}


def suite_names() -> list[str]:
    """Return the names of the suites that come with the library."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_suite(name: str) -> Suite:
    """Return a suite by its name, or by the path of a .toml file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        if name.endswith(".toml"):
            raise InvalidFile(f"Expected a suite, found no file {name}.")
        raise UnknownName("suite", name, suite_names())
    try:
        return _suite(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise InvalidFile(f"Expected {path} to be TOML, found: {error}.") from None
    except TransduceError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidFile(f"Expected a suite in {path}, found trouble with {error}.") from None


def _suite(name: str, data: dict[str, Any]) -> Suite:
    _known(data, {*_names(Suite), "methods", "tune"}, "a suite")
    columns = _columns(data["columns"])
    tables = tuple(_table(table, columns) for table in data["tables"])
    rows = _every_method(data["methods"], data.get("tune", True)) if "methods" in data else []
    rows += [_row(row, columns) for row in data.get("rows", [])]
    for metric in data.get("metrics", []):
        METRICS[metric]  # refuse an unknown one
    parts = {"name": name, "columns": columns, "tables": tables, "rows": rows}
    return from_plain(Suite, {**data, **parts}, f"suite {name}")


def _columns(data: Any) -> tuple[Column, ...]:  # noqa: ANN401 (TOML)
    """Return the columns, given as tables or by the name of a file that several suites share."""
    if isinstance(data, str):
        path = FOLDER / "columns" / f"{data}.toml"
        if not path.is_file():
            raise UnknownName("set of columns", data, [p.stem for p in path.parent.glob("*.toml")])
        data = tomllib.loads(path.read_text(encoding="utf-8"))["columns"]
    columns = []
    for entry in data:
        _known(entry, _names(Column), "a column")
        key = entry.get("key", entry["dataset"])
        columns.append(from_plain(Column, {"label": key, **entry, "key": key}, "column"))
    return tuple(columns)


def _table(data: dict[str, Any], columns: tuple[Column, ...]) -> Table:
    _known(data, _names(Table), "a table")
    for key in data.get("columns", ()):
        if key not in {column.key for column in columns}:
            raise UnknownName("column", key, [column.key for column in columns])
    protocol = protocol_from_json(data["protocol"])
    settings = tuple(data.get("settings", {}).items())
    return from_plain(Table, {**data, "protocol": protocol, "settings": settings}, "table")


def _row(data: dict[str, Any], columns: tuple[Column, ...]) -> MethodRow:
    _known(data, _names(MethodRow), "a row")
    settings = data.get("settings", {})
    check_settings(data["method"], settings)
    paper = {key: _numbers(value, columns) for key, value in data.get("paper", {}).items()}
    parts = {"settings": tuple(settings.items()), "paper": paper}
    space = {"space": METHODS[data["method"]].spaces[0]}
    return from_plain(MethodRow, {**space, **data, **parts}, "row")


def _numbers(data: float | list[float], columns: tuple[Column, ...]) -> PaperNumbers:
    """Return the paper's numbers by column; a single number, or one more, is the average."""
    if not isinstance(data, list):
        return {AVERAGE: float(data)}
    keys = [column.key for column in columns]
    if len(data) == len(keys) + 1:
        keys.append(AVERAGE)
    if len(data) != len(keys):
        raise InvalidSetting(
            f"Expected {len(keys)} numbers of the paper, or one more for the average, found "
            f"{len(data)}."
        )
    return dict(zip(keys, map(float, data), strict=True))


def _every_method(which: str, tune: bool | list[str]) -> list[MethodRow]:
    """Return rows for the whole catalogue: in `every` space of a method, or in its `first`.

    `tune` says whether settings with a grid are tuned, or for which methods.
    """
    if which not in (EVERY, "first"):
        raise InvalidSetting(f"Expected methods to be 'every' or 'first' space, found {which!r}.")
    rows = []
    for name, method in METHODS.items():
        # A method without shots is listed once: zero-shot answers the same in every space.
        spaces = method.spaces if which == EVERY and method.support != "unused" else ()
        for space in spaces or method.spaces[:1]:
            tuned = tune if isinstance(tune, bool) else name in tune
            rows.append(
                MethodRow(label=name, method=name, space=space, section=SECTIONS[space], tune=tuned)
            )
    return rows


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def _known(data: Mapping[str, Any], known: set[str], what: str) -> None:
    for key in data:
        if key not in known:
            raise UnknownName(f"entry of {what}", key, known)
