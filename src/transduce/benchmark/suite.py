"""Suites as values: tables of methods (rows) and datasets (columns), with the paper's numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from transduce.benchmark.episodes.episode_protocol import EpisodeProtocol
from transduce.benchmark.run import FeatureSpace, Run, Setting
from transduce.errors import InvalidSetting, UnknownName
from transduce.methods import METHODS

Measure = Literal["accuracy", "seconds"]
Summary = Literal["", "regimes"]
PaperNumbers = Mapping[str, float]  # of the paper, by column; AVERAGE is one of them
AVERAGE = "average"


@dataclass(frozen=True)
class Column:
    """The features of a dataset by an encoder; `key` names them, `label` is shown."""

    key: str
    label: str
    dataset: str
    encoder: str
    support_split: str = "train"


@dataclass(frozen=True)
class MethodRow:
    """A method in a space, with the settings that differ from its defaults."""

    label: str
    method: str
    space: FeatureSpace = "probability"
    section: str = ""
    settings: tuple[tuple[str, Setting], ...] = ()
    tune: bool = True
    temperature: float | None = None  # of the softmax over cosines, if not the suite's
    paper: Mapping[str, PaperNumbers] = field(default_factory=dict, hash=False)  # by table

    @property
    def full_label(self) -> str:
        """Label and section."""
        return f"{self.label}, {self.section}" if self.section else self.label


@dataclass(frozen=True)
class Table:
    """One protocol for all rows and columns; `x` is its position on the axis of the figure."""

    key: str
    title: str
    protocol: EpisodeProtocol
    query_split: str = "test"
    columns: tuple[str, ...] | None = None
    settings: tuple[tuple[str, Setting], ...] = ()
    x: float | None = None
    tasks: int | None = None  # if not the suite's


@dataclass(frozen=True)
class Figure:
    """Accuracy of each row against the tables' `x`."""

    title: str
    x_label: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the run that fills it, or the reason why there is none."""

    table: Table
    row: MethodRow
    column: Column
    run: Run | None
    reason: str = ""
    paper: float | None = None


@dataclass(frozen=True)
class Suite:
    """Tables that share rows, columns, tasks and seed.

    Parameters
    ----------
    name, title, note : str
        File name, heading and introduction of the report.
    columns, tables, rows : tuple
        Every table has all rows and, if it does not name some, all columns.
    tasks, seed : int
        Of every cell.
    temperature : float
        Of the softmax over cosines.
    measure : {"accuracy", "seconds"}
        What the tables show.
    metrics : tuple of str
        Names in `METRICS` that get a further table each.
    average : bool
        Add the average over columns.
    figure : Figure, optional
        Accuracy against the tables' `x`.
    summary : {"", "regimes"}
        Put methods against tables, averaged over columns, in front; the first row is compared
        with its best rival.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    tables: tuple[Table, ...]
    rows: tuple[MethodRow, ...]
    tasks: int = 1000
    seed: int = 2024
    temperature: float = 30.0
    measure: Measure = "accuracy"
    metrics: tuple[str, ...] = ()
    average: bool = False
    figure: Figure | None = None
    summary: Summary = ""

    def columns_of(self, table: Table) -> tuple[Column, ...]:
        """Return the columns of a table."""
        if table.columns is None:
            return self.columns
        by_key = {column.key: column for column in self.columns}
        return tuple(by_key[key] for key in table.columns if key in by_key)

    def tasks_of(self, table: Table) -> int:
        """Return the tasks of each cell of a table: one, if there is only one to draw."""
        return 1 if table.protocol.one_draw else table.tasks or self.tasks

    def with_tasks(self, tasks: int) -> "Suite":
        """Return the suite with as many tasks in every table."""
        tables = tuple(replace(table, tasks=None) for table in self.tables)
        return replace(self, tasks=tasks, tables=tables)

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of all tables, column by column."""
        for table in self.tables:
            for column in self.columns_of(table):
                for row in self.rows:
                    yield self._cell(table, row, column)

    def _cell(self, table: Table, row: MethodRow, column: Column) -> Cell:
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
            tasks=self.tasks_of(table),
            seed=self.seed,
            temperature=self.temperature if row.temperature is None else row.temperature,
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
        """Return the suite with these methods and columns only; with all, where none is named."""
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
        """Return the same tables on other datasets, or with another encoder.

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
