"""Results on disk: one JSON a benchmark, a row at a time, and the table made from it.

Every file names the command, the versions and the machine. Rows that a file already holds are
not measured again (`--fresh` starts over), so that a long benchmark survives an interruption.
"""

import json
import os
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results"
LIBRARIES = ("transduce", "numpy", "scipy", "numba")

Row = dict[str, object]


def machine() -> dict[str, str]:
    """What ran this: processor, cores and versions."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return {
        "processor": processor,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
    }


class Record:
    """The rows of one benchmark, saved whenever one is added."""

    def __init__(self, name: str, command: str, note: str, *, fresh: bool) -> None:
        self.path = RESULTS / f"{name}.json"
        self._head: Row = {"command": command, "note": note, "machine": machine()}
        stored = json.loads(self.path.read_text()) if self.path.exists() and not fresh else {}
        self.rows: list[Row] = stored.get("rows", [])

    def add(self, key: Mapping[str, object], measure: Callable[[], Row]) -> Row:
        """The row of this key, measured if it is not there yet."""
        for row in self.rows:
            if all(row.get(name) == value for name, value in key.items()):
                return row
        row = {**key, **measure(), "load": round(os.getloadavg()[0], 1)}
        self.rows.append(row)
        self._save()
        return row

    def _save(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({**self._head, "rows": self.rows}, indent=1) + "\n")
        part.replace(self.path)

    def write_table(self, title: str, columns: Mapping[str, Callable[[Row], str]]) -> str:
        """A Markdown table beside the JSON, and returned for the terminal."""
        cells = [list(columns)] + [[show(row) for show in columns.values()] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        lines = [
            "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
            for line in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        table = "\n".join(lines)
        facts = ", ".join(f"{name} {value}" for name, value in machine().items())
        text = f"# {title}\n\n{self._head['note']}\n\n{table}\n\n"
        text += f"Made by `{self._head['command']}` on {facts}.\n"
        self.path.with_suffix(".md").write_text(text)
        return table
