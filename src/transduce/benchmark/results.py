"""Results on disk: one JSON a run; parts of unfinished runs beside them, so that nothing is lost.

    OUT/runs/RUN.json                       finished
    OUT/work/parts/RUN/00025-00050.json     tasks 25 to 49 of an unfinished run
    OUT/work/tuning/....json                settings chosen on validation tasks
    OUT/work-3-of-16/...                    the same, of one shard: copy these folders together

Every file appears at once or not at all. A shard only writes parts; the run without a shard puts
all parts together, and computes those that are missing.
"""

import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from transduce.atomic import replace_text
from transduce.benchmark.evaluation import Records, bounds
from transduce.benchmark.metrics import mean_and_interval
from transduce.benchmark.run import Run, Setting
from transduce.errors import InvalidFile, InvalidSetting

LIBRARIES = ("transduce", "numpy", "scipy", "numba")
REMOVE = "remove it, and it is computed again"


@dataclass(frozen=True)
class Shard:
    """Share `number` (from 1) of `total`."""

    number: int = 1
    total: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        number, slash, total = text.partition("/")
        if not (slash and number.isdigit() and total.isdigit() and 1 <= int(number) <= int(total)):
            raise InvalidSetting(f"Expected a shard such as 3/16, found {text!r}.")
        return cls(int(number), int(total))

    @property
    def whole(self) -> bool:
        return self.total == 1

    def has(self, chunk_number: int) -> bool:
        return chunk_number % self.total == self.number - 1

    @property
    def folder(self) -> str:
        return "work" if self.whole else f"work-{self.number}-of-{self.total}"


@dataclass(frozen=True)
class Result:
    """A finished run: what was asked, with which settings, and what came out of every task."""

    run: Run
    settings: Mapping[str, Setting]
    records: Records
    tuning: Mapping[str, Any] | None
    versions: Mapping[str, str]
    machine: Mapping[str, Any]

    @property
    def accuracy(self) -> float:
        return mean_and_interval(self.records.accuracies)[0]

    @property
    def interval(self) -> float:
        return mean_and_interval(self.records.accuracies)[1]

    @property
    def recall(self) -> float:
        return mean_and_interval(self.records.recall)[0]

    @property
    def seconds(self) -> float:
        """Per task, the median: the first task of a process also loads the compiled kernels."""
        return median(self.records.seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run.to_json(),
            "accuracy": round(self.accuracy, 6),
            "interval": round(self.interval, 6),
            "mean_per_class_recall": round(self.recall, 6),
            "seconds_per_task": self.seconds,
            "settings": dict(self.settings),
            "tuning": None if self.tuning is None else dict(self.tuning),
            "tasks": self.records.to_json(),
            "versions": dict(self.versions),
            "machine": dict(self.machine),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Result":
        return cls(
            Run.from_json(found["run"]),
            found["settings"],
            Records.from_json(found["tasks"]),
            found["tuning"],
            found["versions"],
            found["machine"],
        )


class ResultFolder:
    """The results and parts under one folder."""

    def __init__(self, folder: Path, shard: Shard | None = None) -> None:
        self.folder = folder
        self.shard = shard or Shard()
        self.work = folder / self.shard.folder

    def path_of(self, run: Run) -> Path:
        return self.folder / "runs" / f"{run.id}.json"

    def read(self, run: Run) -> Result | None:
        """The finished result of a run, if it is there."""
        path = self.path_of(run)
        if not path.exists():
            return None
        value = _read(path, ("run", "settings", "tasks", "tuning", "versions", "machine"))
        try:
            result = Result.from_json(value)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(f"Expected a result in {path}, found: {error}; {REMOVE}.") from None
        if result.run != run or len(result.records) != run.tasks:
            raise InvalidFile(
                f"Expected the result of {run.id} in {path}, found another; {REMOVE}."
            )
        return result

    def parts_of(self, run: Run) -> dict[int, tuple[Records, dict[str, Any]]]:
        """The chunks that are done, by where they start: records, and the head they share."""
        found = {}
        for start, stop in bounds(run.tasks):
            for folder in self._everyone():
                path = folder / "parts" / run.id / _part_name(start, stop)
                if start not in found and path.exists():
                    value = _read(path, ("tasks", "settings", "machine"))
                    found[start] = Records.from_json(value.pop("tasks")), value
        return found

    def write_part(
        self, run: Run, start: int, stop: int, records: Records, head: Mapping[str, Any]
    ) -> None:
        path = self.work / "parts" / run.id / _part_name(start, stop)
        _write(path, {**head, "tasks": records.to_json()})

    def finish(self, run: Run, tuning: Mapping[str, Any] | None) -> Result | None:
        """Put the parts of a run together; None if some are missing."""
        parts = self.parts_of(run)
        if len(parts) < len(bounds(run.tasks)):
            return None
        records = Records()
        heads = []
        for start, _ in bounds(run.tasks):
            part, head = parts[start]
            records += part
            heads.append(head)
        if any(head["settings"] != heads[0]["settings"] for head in heads):
            raise InvalidFile(
                f"Expected all parts of {run.id} with the same settings, found different ones; "
                f"remove {self.folder}/work*/parts/{run.id}."
            )
        result = Result(
            run, heads[0]["settings"], records, tuning, heads[0]["versions"], heads[0]["machine"]
        )
        _write(self.path_of(run), result.to_json())
        for folder in self._everyone():
            shutil.rmtree(folder / "parts" / run.id, ignore_errors=True)
        return result

    def read_tuning(self, key: str) -> dict[str, Any] | None:
        for folder in self._everyone():
            path = folder / "tuning" / f"{key}.json"
            if path.exists():
                return _read(path, ("chosen", "candidates"))
        return None

    def write_tuning(self, key: str, value: Mapping[str, Any]) -> None:
        _write(self.work / "tuning" / f"{key}.json", value)

    def forget(self, run: Run) -> None:
        self.path_of(run).unlink(missing_ok=True)
        for folder in self._everyone():
            shutil.rmtree(folder / "parts" / run.id, ignore_errors=True)

    def _everyone(self) -> list[Path]:
        """Where parts may lie: our own folder first, then those of all shards."""
        others = sorted(path for path in self.folder.glob("work*") if path != self.work)
        return [self.work, *others]


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


@cache
def machine() -> dict[str, Any]:
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return {"processor": processor, "cores": os.cpu_count(), "system": platform.system()}


def _part_name(start: int, stop: int) -> str:
    return f"{start:05d}-{stop:05d}.json"


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """JSON with a line for each entry: short lists of numbers would fill pages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f" {json.dumps(key)}: {json.dumps(one, ensure_ascii=False, separators=(',', ':'))}"
        for key, one in value.items()
    ]
    replace_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _read(path: Path, needed: tuple[str, ...]) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        missing = [key for key in needed if key not in value]
    except (ValueError, TypeError) as error:
        raise InvalidFile(f"Expected JSON in {path}, found: {error}; {REMOVE}.") from None
    if missing:
        raise InvalidFile(
            f"Expected a result in {path}, found one without {', '.join(missing)}; {REMOVE}."
        )
    return dict(value)
