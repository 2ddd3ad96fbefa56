"""Reading suites: those that come with the library by name, others by the path of their TOML."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from transduce.benchmark.episodes.protocol import protocol_from_json
from transduce.benchmark.run import check_settings
from transduce.benchmark.suite import AVERAGE, Column, Figure, Numbers, Row, Suite, Table
from transduce.errors import InvalidFile, InvalidSetting, TransduceError, UnknownName
from transduce.methods import METHODS

FOLDER = Path(__file__).parent / "suites"
EVERY = "every"
SECTIONS = {"probability": "probabilities", "embedding": "embeddings"}


def suite_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_suite(name: str) -> Suite:
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


def _suite(name: str, found: dict[str, Any]) -> Suite:
    _known(found, {*_names(Suite), "methods", "tune"}, "a suite")
    columns = _columns(found["columns"])
    tables = tuple(_table(one) for one in found["tables"])
    tune = found.get("tune", True)
    rows = _every_method(found["methods"], tune) if "methods" in found else []
    rows += [_row(one, columns) for one in found.get("rows", [])]
    plain = {
        key: found[key]
        for key in ("note", "tasks", "seed", "temperature", "measure", AVERAGE)
        if key in found
    }
    figure = Figure(**found["figure"]) if "figure" in found else None
    suite = Suite(
        name=name, title=found["title"], columns=columns, tables=tables, rows=tuple(rows),
        figure=figure, **plain,
    )  # fmt: skip
    for table in tables:
        for key in table.columns or ():
            if key not in {column.key for column in columns}:
                raise UnknownName("column", key, [column.key for column in columns])
    return suite


def _columns(found: Any) -> tuple[Column, ...]:  # noqa: ANN401 (TOML)
    """Columns themselves, or the name of a file of columns that several suites share."""
    if isinstance(found, str):
        path = FOLDER / "columns" / f"{found}.toml"
        if not path.is_file():
            raise UnknownName("set of columns", found, [p.stem for p in path.parent.glob("*.toml")])
        found = tomllib.loads(path.read_text(encoding="utf-8"))["columns"]
    columns = []
    for one in found:
        _known(one, _names(Column), "a column")
        key = one.get("key", one["dataset"])
        columns.append(Column(**{"label": key, **one, "key": key}))
    return tuple(columns)


def _table(found: dict[str, Any]) -> Table:
    _known(found, _names(Table), "a table")
    columns = tuple(found["columns"]) if "columns" in found else None
    return Table(
        key=found["key"],
        title=found["title"],
        protocol=protocol_from_json(found["protocol"]),
        query_split=found.get("query_split", "test"),
        columns=columns,
        settings=tuple(found.get("settings", {}).items()),
        x=found.get("x"),
    )


def _row(found: dict[str, Any], columns: tuple[Column, ...]) -> Row:
    _known(found, _names(Row), "a row")
    settings = found.get("settings", {})
    check_settings(found["method"], settings)
    paper = {key: _numbers(value, columns) for key, value in found.get("paper", {}).items()}
    space = found.get("space", METHODS[found["method"]].spaces[0])
    return Row(**{**found, "space": space, "settings": tuple(settings.items()), "paper": paper})


def _numbers(found: float | list[float], columns: tuple[Column, ...]) -> Numbers:
    """One number is the average; a list is one for each column and, if one more, the average."""
    if not isinstance(found, list):
        return {AVERAGE: float(found)}
    keys = [column.key for column in columns]
    if len(found) == len(keys) + 1:
        keys.append(AVERAGE)
    if len(found) != len(keys):
        raise InvalidSetting(
            f"Expected {len(keys)} numbers of the paper, or one more for the average, found "
            f"{len(found)}."
        )
    return dict(zip(keys, map(float, found), strict=True))


def _every_method(which: str, tune: bool | list[str]) -> list[Row]:
    """The whole catalogue: in `every` space a method works in, or in its `first`.

    `tune` says whether settings with a grid are tuned, or for which methods.
    """
    if which not in (EVERY, "first"):
        raise InvalidSetting(f"Expected methods to be 'every' or 'first' space, found {which!r}.")
    rows = []
    for name, method in METHODS.items():
        # A method that learns nothing from the batch answers the same in every space.
        spaces = method.spaces if which == EVERY and method.support != "unused" else ()
        for space in spaces or method.spaces[:1]:
            tuned = tune if isinstance(tune, bool) else name in tune
            rows.append(
                Row(label=name, method=name, space=space, section=SECTIONS[space], tune=tuned)
            )
    return rows


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def _known(found: Mapping[str, Any], known: set[str], what: str) -> None:
    for key in found:
        if key not in known:
            raise UnknownName(f"entry of {what}", key, known)
