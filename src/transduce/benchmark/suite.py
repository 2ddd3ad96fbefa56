"""Suites as data: tables of rows (methods) and columns (datasets), with the paper's numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from transduce.benchmark.episodes.protocol import Protocol
from transduce.benchmark.run import Run, Setting, View
from transduce.errors import InvalidSetting, UnknownName
from transduce.methods import METHODS

Measure = Literal["accuracy", "seconds"]
Numbers = Mapping[str, float]  # of the paper, by column; AVERAGE is one of them
AVERAGE = "average"


@dataclass(frozen=True)
class Column:
    """A dataset seen by an encoder."""

    key: str
    label: str
    dataset: str
    encoder: str
    support_split: str = "train"


@dataclass(frozen=True)
class Row:
    """A method in a space, with the settings that differ from its defaults."""

    label: str
    method: str
    space: View = "probability"
    section: str = ""
    settings: tuple[tuple[str, Setting], ...] = ()
    tune: bool = True
    paper: Mapping[str, Numbers] = field(default_factory=dict, hash=False)  # by table

    @property
    def full_label(self) -> str:
        return f"{self.label}, {self.section}" if self.section else self.label


@dataclass(frozen=True)
class Table:
    """One protocol for all rows and columns; `x` is its place on the axis of the figure."""

    key: str
    title: str
    protocol: Protocol
    query_split: str = "test"
    columns: tuple[str, ...] | None = None
    settings: tuple[tuple[str, Setting], ...] = ()
    x: float | None = None


@dataclass(frozen=True)
class Figure:
    """Accuracy of each row against the tables' `x`."""

    title: str
    x_label: str


@dataclass(frozen=True)
class Cell:
    """A place in a table: the run that fills it, or why there is none."""

    table: Table
    row: Row
    column: Column
    run: Run | None
    reason: str = ""
    paper: float | None = None


@dataclass(frozen=True)
class Suite:
    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    tables: tuple[Table, ...]
    rows: tuple[Row, ...]
    tasks: int = 1000
    seed: int = 2024
    temperature: float = 30.0
    measure: Measure = "accuracy"
    average: bool = False
    figure: Figure | None = None

    def columns_of(self, table: Table) -> tuple[Column, ...]:
        if table.columns is None:
            return self.columns
        by_key = {column.key: column for column in self.columns}
        return tuple(by_key[key] for key in table.columns if key in by_key)

    def cells(self) -> Iterator[Cell]:
        for table in self.tables:
            for column in self.columns_of(table):
                for row in self.rows:
                    yield self._cell(table, row, column)

    def _cell(self, table: Table, row: Row, column: Column) -> Cell:
        paper = row.paper.get(table.key, {}).get(column.key)
        method = METHODS[row.method]
        if method.support == "needed" and not table.protocol.shots:
            return Cell(table, row, column, None, "needs labeled shots", paper)
        run = Run(
            dataset=column.dataset,
            encoder=column.encoder,
            method=row.method,
            protocol=table.protocol,
            settings=tuple({**dict(row.settings), **dict(table.settings)}.items()),
            space=row.space,
            tasks=self.tasks,
            seed=self.seed,
            temperature=self.temperature,
            query_split=table.query_split,
            support_split=column.support_split,
            tuned=row.tune and bool(method.grid) and table.protocol.shots > 0,
        )
        try:
            run.build()
        except InvalidSetting as error:  # it needs more than features, such as a text tower
            return Cell(table, row, column, None, str(error), paper)
        return Cell(table, row, column, run, "", paper)

    def narrowed(self, *, methods: Sequence[str] = (), columns: Sequence[str] = ()) -> "Suite":
        """Only some of the methods and columns, by name."""
        for name in methods:
            if name not in {row.method for row in self.rows}:
                raise UnknownName(f"method of {self.name}", name, {row.method for row in self.rows})
        for key in columns:
            if key not in {column.key for column in self.columns}:
                raise UnknownName(
                    f"column of {self.name}", key, [column.key for column in self.columns]
                )
        return replace(
            self,
            rows=tuple(row for row in self.rows if not methods or row.method in methods),
            columns=tuple(c for c in self.columns if not columns or c.key in columns),
        )

    def on_datasets(self, datasets: Sequence[str], encoder: str | None) -> "Suite":
        """The same tables on other datasets, or seen by another encoder.

        The paper's numbers stay beside its own datasets as long as the encoder is its own.
        """
        old = {column.dataset: column for column in self.columns}
        names = datasets or [column.dataset for column in self.columns]
        columns = []
        for name in names:
            first = old.get(name, Column(name, name, name, self.columns[0].encoder))
            chosen = first.encoder if encoder is None else encoder
            key = first.key if chosen == first.encoder else f"{first.key} {chosen}"
            columns.append(replace(first, key=key, encoder=chosen))
        tables = tuple(replace(table, columns=None) for table in self.tables)
        return replace(self, columns=tuple(columns), tables=tables)
