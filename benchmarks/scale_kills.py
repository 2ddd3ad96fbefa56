"""Workers and drivers that are killed: the runs `ray` and `resume` of `benchmarks.scale`.

`python -m benchmarks.scale_kills ray FOLDER METHOD` prints one line of JSON, as does `resume`. The
answers of a batch in memory, from disk, on 1, 2 and 4 Ray workers, of ten more runs with a worker
killed in the middle, and of drivers that were killed and resumed are compared to the bit.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.planted import Planted
from benchmarks.scale_runs import DIRICHLET_ITERATIONS, TEMPERATURE, stored
from transduce.labeling.executors import RayPasses
from transduce.labeling.problem import likeliest_of
from transduce.labeling.solving.checkpoint import FileCheckpoint
from transduce.labeling.solving.rows import StoredBatch
from transduce.machine.cluster import Cluster
from transduce.methods import METHODS
from transduce.methods.anchored import Anchored
from transduce.methods.anchored import passes as anchored_passes
from transduce.methods.anchored.batch import ArrayRows
from transduce.methods.anchored.passes import BEST
from transduce.methods.large_mixture import ZeroShotRows, solve_mixture
from transduce.methods.method import without_convergence_warnings
from transduce.mixtures import expectation
from transduce.simplex.passes import Checkpoint, Passes, in_threads
from transduce.task import Task

KILLS, RAY_IMAGES, RAY_CLASSES = 10, 20_000, 50
STEPS = {Anchored.name: 12}  # that assign; of the others as many as iterations
RESUMED = {Anchored.name: (3, 7, 11)}  # the driver is killed after these; of the others 1, 3, 5
ASSIGNING = (anchored_passes.assign_chunk, expectation.assign_and_sum)


@dataclass(frozen=True)
class Solver:
    """A method on the simulated batch; an answer is the hash of its labels and probabilities."""

    method: str
    rows: StoredBatch
    texts: np.ndarray

    @classmethod
    def of(cls, method: str, folder: Path) -> "Solver":
        """The method on the batch in a folder, which is made if it is not there."""
        rows, _ = stored(folder, RAY_IMAGES, RAY_CLASSES)
        return cls(method, rows, Planted(RAY_CLASSES, RAY_CLASSES).texts())

    def __call__(
        self,
        *,
        in_memory: bool = False,
        passes: Passes = in_threads,
        checkpoint: Checkpoint | None = None,
    ) -> str:
        """The hash of the answer."""
        rows = ArrayRows(self.every()) if in_memory else self.rows
        if self.method == Anchored.name:
            answer = Anchored().solve(rows, self.texts, passes=passes, checkpoint=checkpoint)
            return _digest(answer.classes, answer.probabilities)
        queries = ZeroShotRows(rows, self.texts, TEMPERATURE)
        given = queries.kept() if in_memory else queries
        solved = solve_mixture(self.mixture(), given, passes=passes, checkpoint=checkpoint)
        best = list(solved.tempered(partial(likeliest_of, count=BEST), passes))
        return _digest(solved.clusters, *(array for part in best for array in part))

    def mixture(self) -> Any:  # noqa: ANN401 - one of two methods
        """The method with as many iterations as elsewhere in this benchmark."""
        return METHODS[self.method](max_iter=DIRICHLET_ITERATIONS, classes_present="all")

    def every(self) -> np.ndarray:
        """All rows, in memory."""
        return self.rows.images(slice(0, len(self.rows)))

    def differing(self) -> int:
        """The number of labels that differ from those of a task in memory; of a mixture."""
        queries = ZeroShotRows(self.rows, self.texts, TEMPERATURE)
        answer = solve_mixture(self.mixture(), queries)
        labels = np.concatenate(list(answer.tempered(partial(np.argmax, axis=1))))
        task = Task.from_embeddings(self.every(), self.texts, temperature=TEMPERATURE)
        return int((labels != self.mixture().predict(task).labels).sum())


def _digest(*arrays: np.ndarray) -> str:
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def die_once(mark: Path, turn: float, work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
    """Kill the process that this runs in, once, in some chunk."""
    if given[2].start >= turn and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(*given)


class Killing:
    """Passes on Ray, of which one has a worker killed in it."""

    def __init__(self, passes: RayPasses, mark: Path, killed_in: int, turn: float) -> None:
        self._passes, self._mark, self._turn = passes, mark, turn
        self._left = killed_in

    def __call__(
        self,
        work: Callable[..., Any],
        batch: object,
        shared: object,
        chunks: Sequence[slice],
    ) -> Iterator[Any]:
        """As the passes, but for the death of a worker in the `killed_in`th assignment."""
        assigning = work in ASSIGNING
        self._left -= assigning
        if self._left == 0 and assigning:
            work = partial(die_once, self._mark, self._turn, work)
        return self._passes(work, batch, shared, chunks)


def run_ray(folder: Path, method: str) -> dict[str, Any]:
    """The same batch in memory, from disk, and on 1, 2 and 4 workers with one of them killed."""
    solve = Solver.of(method, folder)
    answers, seconds = [solve(in_memory=True), solve()], []
    draw = random.Random(0)
    for run in range(3 + KILLS):
        workers = (1, 2, 4)[run % 3]
        mark = folder / f"killed-{method}-{run}"
        mark.unlink(missing_ok=True)
        last = STEPS.get(method, DIRICHLET_ITERATIONS)
        killed_in = draw.randrange(1, last + 1) if run >= 3 else -1
        with Cluster(workers) as cluster:
            turn = RAY_IMAGES * draw.random() * 0.7
            killing = Killing(RayPasses(cluster), mark, killed_in, turn)
            clock = perf_counter()
            answers.append(solve(passes=killing))
            seconds.append(perf_counter() - clock)
        assert mark.exists() == (run >= 3)
    same = len(set(answers)) == 1
    words = (
        f"in memory, from disk, 1, 2 and 4 workers, and {KILLS} runs with a worker killed: "
        f"{'equal to the bit' if same else 'NOT EQUAL'}; 1, 2, 4 workers: "
        + ", ".join(f"{value:.0f} s" for value in seconds[:3])
    )
    if method != Anchored.name:
        words += f"; {solve.differing()} labels differ from those of a task"
    return {"images": RAY_IMAGES, "classes": RAY_CLASSES, "method": method, "said": words}


def run_resume(folder: Path, method: str) -> dict[str, Any]:
    """A driver killed after each of some steps, and another that goes on."""
    solve = Solver.of(method, folder)
    whole, steps, same = solve(), RESUMED.get(method, (1, 3, 5)), []
    for step in steps:
        state = _state(folder, method, step)
        state.unlink(missing_ok=True)
        words = [sys.executable, "-m", "benchmarks.scale_kills", "killed", str(folder), method]
        killed = subprocess.run([*words, str(step)], check=False)
        assert killed.returncode == -signal.SIGKILL
        same.append(solve(checkpoint=FileCheckpoint(state, "scale")) == whole)
    when = ", ".join(map(str, steps))
    words_said = f"driver killed after steps {when} and resumed: {'equal' if all(same) else same}"
    return {"images": RAY_IMAGES, "classes": RAY_CLASSES, "method": method, "said": words_said}


def run_killed(folder: Path, method: str, step: str) -> dict[str, Any]:
    """Solve, and die after a step."""
    kept = 0

    class Dying(FileCheckpoint):
        def keep(self, arrays: Mapping[str, np.ndarray]) -> None:
            nonlocal kept
            FileCheckpoint.keep(self, arrays)
            kept += 1
            if kept == int(step):
                os.kill(os.getpid(), signal.SIGKILL)

    Solver.of(method, folder)(checkpoint=Dying(_state(folder, method, int(step)), "scale"))
    return {}


def _state(folder: Path, method: str, step: int) -> Path:
    return folder / f"state-{method}-{step}.npz"


RUNS: dict[str, Callable[..., dict[str, Any]]] = {
    "ray": run_ray,
    "resume": run_resume,
    "killed": run_killed,
}

if __name__ == "__main__":
    with without_convergence_warnings():
        print(json.dumps(RUNS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
