"""Results on disk: one JSON a benchmark, a row at a time, and the table made from it.

Every file names the command, the versions and the machine. Rows that a file already holds are
not measured again (`--fresh` starts over), so that a long benchmark survives an interruption.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from transduce.benchmark.provenance import machine, versions

RESULTS = Path(__file__).parent.parent / "results"

Row = dict[str, object]


class Record:
    """The rows of one benchmark, saved whenever one is added."""

    def __init__(self, name: str, command: str, note: str, *, fresh: bool) -> None:
        self.path = RESULTS / f"{name}.json"
        self._head: Row = {"command": command, "note": note, "machine": {**machine(), **versions()}}
        stored = json.loads(self.path.read_text()) if self.path.exists() and not fresh else {}
        self.rows: list[Row] = stored.get("rows", [])

    def add(self, key: Mapping[str, object], measure: Callable[[], Row]) -> Row:
        """Return the row of this key, measured if it is not there yet."""
        for row in self.rows:
            if all(row.get(name) == value for name, value in key.items()):
                return row
        row = {**key, **measure(), "load": round(os.getloadavg()[0], 1)}
        self.rows.append(row)
        self._save()
        return row

    def _save(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        # Here, because benchmarks/method_speed.py runs its child with an older revision.
        from transduce.machine.atomic import replace_json

        replace_json(self.path, {**self._head, "rows": self.rows})

    def write_table(
        self,
        title: str,
        columns: Mapping[str, Callable[[Row], str]],
        rows: Sequence[Row] | None = None,
    ) -> str:
        """Write a Markdown table beside the JSON, and return it for the terminal.

        `rows` are the lines of the table, by default those of the JSON.
        """
        lines_of = self.rows if rows is None else rows
        cells = [list(columns)] + [[show(row) for show in columns.values()] for row in lines_of]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        lines = [
            "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
            for line in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        table = "\n".join(lines)
        text = f"# {title}\n\n{self._head['note']}\n\n{table}\n\n{self.made_by()}\n"
        self.path.with_suffix(".md").write_text(text)
        return table

    def made_by(self) -> str:
        """Return the line that names the command, the machine and the versions."""
        made_on = {**machine(), **versions()}
        facts = ", ".join(f"{name} {value}" for name, value in made_on.items())
        return f"Made by `{self._head['command']}` on {facts}."
