"""Label the rows of a feature store batch by batch, within memory that is known beforehand."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
from jaxtyping import Float32

from transduce.labeling.automatic import (
    OWN_TEMPERATURE,
    MethodChoice,
    choose_method,
    explain,
    label_probabilities,
    own_scores,
    presence_sample,
)
from transduce.labeling.problem import (
    BatchSummary,
    Posterior,
    Problem,
    Rows,
    Shots,
    Solution,
    entropy_share,
    keeps_all,
    names_entropy,
    put,
    put_best,
    top_and_entropy,
    top_two,
)
from transduce.labeling.settings import AUTO, EVERYTHING, UNKNOWN, LabelSettings
from transduce.labeling.solving.checkpoint import FileCheckpoint, fingerprint_of
from transduce.labeling.solving.large_mixtures import is_large, solve_large
from transduce.labeling.solving.rows import KEPT_BYTES, batch_rows
from transduce.labeling.trust.doubt import doubts
from transduce.methods import METHODS
from transduce.methods.anchored import Anchored
from transduce.methods.anchored.batch import KnownRows
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.method import without_convergence_warnings
from transduce.methods.mixture import MixtureMethod, MixtureModel
from transduce.simplex.passes import ONE_CHUNK, Passes, Work, in_threads
from transduce.simplex.probabilities import BLOCK_ENTRIES, blocks, softmax, zero_shot_probabilities
from transduce.simplex.threads import one_blas_thread, over_slices
from transduce.task import Classifier, Task, Trace

WIDTH = 512  # features of a usual encoder
ENTRY_BYTES, CLASS_BYTES = 900, 40 * WIDTH  # of `anchored`, per image and per class
PASSES = 32  # over the images of a batch
BEST_BYTES = 160  # of an image's best classes and their probabilities

Result = TypeVar("Result")


def memory_needed(n_images: int, n_classes: int, settings: LabelSettings) -> int:
    """Return an estimate in bytes, beside the features.

    `anchored` keeps some entries of each image and sums of each class, rows only if they are few;
    the others three image x class arrays and four of class x class, but for large batches of
    the paper's mixtures: these keep the probabilities if they are few, and sums of each class.
    """
    size = n_images if settings.batch == EVERYTHING else min(n_images, int(settings.batch))
    if settings.method in (AUTO, Anchored.name):
        kept = 0 if keeps_all(n_images, n_classes) else BEST_BYTES * n_images
        rows = min(KEPT_BYTES, 4 * WIDTH * size)
        return kept + rows + size * ENTRY_BYTES + n_classes * CLASS_BYTES
    if is_large(METHODS[settings.method], size, n_classes):
        kept = 0 if 4 * size * n_classes > KEPT_BYTES else 4 * size * n_classes
        return kept + BEST_BYTES * n_images + 100 * BLOCK_ENTRIES + 10 * 8 * n_classes**2
    return 3 * 4 * size * n_classes + 4 * 8 * n_classes**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who solves large batches, and what is kept so that a stopped run can go on."""

    passes: Passes = in_threads
    state: Path | None = None  # the file for the state after each step
    say: Callable[[str], None] = lambda line: None


IN_THIS_PROCESS = Workers()


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a method says of a batch, beside the probabilities, which are kept already."""

    choice: MethodChoice
    trace: Trace
    model: Classifier | None
    evidence: Mapping[str, np.ndarray]


def solve(
    problem: Problem,
    probabilities: Posterior,
    progress: Callable[[int], None] = lambda images: None,
    workers: Workers = IN_THIS_PROCESS,
) -> Solution:
    """Fill `probabilities` and return it with all that follows from it.

    `progress` is called with the number of images that were labeled meanwhile.
    """
    solution = Solution.empty(probabilities)
    shots = _all_shots(problem)
    for rows in problem.batches():
        start, watched = perf_counter(), None
        asked = rows[[int(row) not in problem.fixed for row in rows]] if problem.fixed else rows
        choice = _choose(problem, asked if len(asked) else rows, shots)
        if not len(asked):
            _fill_zero_shot(problem, rows, solution)
            continue
        anchored = isinstance(choice.method, Anchored)
        if anchored or is_large(choice.method, len(asked), problem.n_classes):
            _fill_zero_shot(problem, rows, solution)
            watched = _Watched(workers.passes, progress, len(rows))
            kept = _checkpoint(problem, asked, shots, choice, workers)
            by = _by_anchored if anchored else _by_mixture
            answer = by(problem, asked, shots, choice, solution, watched, kept)
        else:
            answer = _by_task(problem, rows, asked, shots, choice, solution)
        trace, estimates = answer.trace, answer.trace.estimates
        solution.batches.append(
            BatchSummary(
                images=len(asked),
                method=choice.method.name,
                classes_present=round(estimates.get("classes_present", choice.classes_present)),
                iterations=trace.iterations,
                converged=trace.converged,
                objective=tuple(float(value) for value in trace.objective),
                seconds=perf_counter() - start,
                estimates={name: float(f"{value:.4g}") for name, value in estimates.items()},
                explanation=explain(choice, estimates, problem.n_classes),
            )
        )
        solution.doubt[asked] = doubts(
            solution.label[asked], solution.top[asked], answer.evidence, estimates
        )
        if answer.evidence:
            solution.neighbors[asked] = answer.evidence["neighbors"]
        if isinstance(answer.model, MixtureModel | AnchoredModel):
            solution.models.append(answer.model)
        solution.choices.append(choice)
        progress(len(rows) - (watched.said if watched else 0))
    _fix(problem, solution)
    return solution


def _all_shots(problem: Problem) -> Shots:
    """Return the shots from outside and the corrected images, which are shots too."""
    rows = np.array(sorted(row for row, k in problem.fixed.items() if k != UNKNOWN), np.int64)
    if not rows.size:
        return problem.shots
    embeddings = np.concatenate([block for _, block in problem.store.unit_blocks(rows)])
    labels = np.array([problem.fixed[int(row)] for row in rows], dtype=np.int64)
    view = None if problem.view is None else problem.view.take(rows)
    return problem.shots.joined(Shots(embeddings, labels, view))


def _choose(problem: Problem, rows: Rows, shots: Shots) -> MethodChoice:
    """Return the method for these images, from zero-shot's guess at some of them."""
    sample = presence_sample(len(rows), problem.n_classes)
    embeddings = np.concatenate([b for _, b in problem.store.unit_blocks(rows[sample])])
    temperature = problem.settings.temperature
    guess = zero_shot_probabilities(embeddings, problem.class_embeddings, temperature)
    known = len(shots) + (problem.past is not None)
    return choose_method(problem.settings, guess, n_images=len(rows), shots=known)


def _fill_zero_shot(problem: Problem, rows: Rows, solution: Solution) -> None:
    """Fill zero-shot's columns of the solution, block by block over threads."""
    texts = np.ascontiguousarray(problem.class_embeddings.T)

    def fill(block: Float32[np.ndarray, "row feature"], where: Rows, piece: slice) -> None:
        cosines, where = block[piece] @ texts, where[piece]
        best = cosines.max(1)
        scores = np.float32(OWN_TEMPERATURE) * (cosines - best[:, np.newaxis])
        solution.distance[where] = 1.0 - best
        solution.zero_shot_label[where] = cosines.argmax(1)
        solution.zero_shot_score[where] = 1.0 / np.exp(scores).sum(1)
        solution.names_entropy[where] = names_entropy(scores)

    with one_blas_thread(0):
        for part, block in problem.store.unit_blocks(rows):
            pieces = blocks(len(block), problem.n_classes)
            over_slices(partial(fill, block, rows[part]), pieces)


def _by_anchored(
    problem: Problem,
    rows: Rows,
    shots: Shots,
    choice: MethodChoice,
    solution: Solution,
    passes: Passes,
    checkpoint: FileCheckpoint | None,
) -> _Answer:
    """Solve a batch whose rows stay where they are; fills the columns of its images."""
    assert isinstance(choice.method, Anchored)
    known = None
    if len(shots):
        known = KnownRows.of(shots.embeddings, shots.labels, shots.view)
    answer = choice.method.solve(
        batch_rows(problem.store, problem.view, rows),
        problem.class_embeddings,
        known,
        passes=passes,
        checkpoint=checkpoint,
        past=problem.past,
    )
    solution.drift = answer.drift
    if answer.drift is not None:
        solution.strange[rows] = answer.drift.far
    put_best(solution.probabilities, rows, answer.classes, answer.probabilities)
    solution.label[rows] = answer.classes[:, 0]
    for part in blocks(*answer.classes.shape):
        top = top_and_entropy(answer.probabilities[part], problem.n_classes)
        solution.top[rows[part]], solution.entropy[rows[part]] = top
    return _Answer(choice, answer.trace, answer.model, answer.evidence)


def _by_mixture(
    problem: Problem,
    rows: Rows,
    shots: Shots,
    choice: MethodChoice,
    solution: Solution,
    passes: Passes,
    checkpoint: FileCheckpoint | None,
) -> _Answer:
    """Solve a large batch by a mixture; fills the columns of its images."""
    assert isinstance(choice.method, MixtureMethod)
    answer = solve_large(problem, rows, shots, choice.method, solution, passes, checkpoint)
    return _Answer(choice, answer.trace, answer.model, {})


def _checkpoint(
    problem: Problem, rows: Rows, shots: Shots, choice: MethodChoice, workers: Workers
) -> FileCheckpoint | None:
    """Return where the state of a large batch is kept; small ones are soon done again."""
    if workers.state is None or len(rows) <= ONE_CHUNK:
        return None
    view = "" if problem.view is None else str(problem.view.store.folder)
    temperature = problem.settings.temperature
    words = f"{choice.method} {temperature} {problem.store.folder} {view}"
    arrays = (rows, problem.class_embeddings, shots.embeddings, shots.labels)
    state = FileCheckpoint(workers.state, fingerprint_of(words, *arrays))
    # Of several batches in turn, each finds the state of another: nothing to be said.
    return replace(state, say=workers.say) if problem.settings.batch == EVERYTHING else state


class _Watched:
    """Passes that say after each how far a large batch is; all of them are about `PASSES`."""

    def __init__(self, passes: Passes, progress: Callable[[int], None], n_images: int) -> None:
        self._passes, self._progress, self._left = passes, progress, n_images
        self._each = n_images // PASSES if n_images > ONE_CHUNK else 0
        self.said = 0

    def __call__(
        self, work: Work[Result], batch: object, shared: object, chunks: Sequence[slice]
    ) -> Iterator[Result]:
        """`work(batch, shared, chunk)` of every chunk, in the order of the chunks."""
        yield from self._passes(work, batch, shared, chunks)
        step = min(self._each, self._left - self.said)
        if step:
            self.said += step
            self._progress(step)


def _by_task(
    problem: Problem,
    rows: Rows,
    asked: Rows,
    shots: Shots,
    choice: MethodChoice,
    solution: Solution,
) -> _Answer:
    """Solve a batch as one task in memory; fills the columns of its images."""
    zero_shot = _zero_shot(problem, rows, solution)
    if len(asked) < len(rows):
        zero_shot = zero_shot[np.searchsorted(rows, asked)]
    task = _task(problem, asked, zero_shot, shots, choice)
    with without_convergence_warnings():  # the summary says which batches did not converge
        prediction = choice.method.predict(task)
    _fill(solution, asked, label_probabilities(prediction, task, choice))
    return _Answer(choice, prediction.trace, prediction.model, prediction.evidence)


def _zero_shot(
    problem: Problem, rows: Rows, solution: Solution
) -> Float32[np.ndarray, "image class"]:
    """Return softmax(T cos) of these rows; fills zero-shot's columns of the solution."""
    temperature = problem.settings.temperature
    zero_shot = np.empty((len(rows), problem.n_classes), np.float32)
    for part, block in problem.store.unit_blocks(rows):
        zero_shot[part] = zero_shot_probabilities(block, problem.class_embeddings, temperature)
        solution.distance[rows[part]] = 1.0 - (block @ problem.class_embeddings.T).max(1)
    for part in blocks(*zero_shot.shape):
        scores = own_scores(zero_shot[part], temperature)
        solution.zero_shot_label[rows[part]] = scores.argmax(1)
        solution.zero_shot_score[rows[part]] = softmax(scores).max(1)
        solution.names_entropy[rows[part]] = names_entropy(scores)
    return zero_shot


def _task(
    problem: Problem,
    rows: Rows,
    zero_shot: Float32[np.ndarray, "image class"],
    shots: Shots,
    choice: MethodChoice,
) -> Task:
    temperature = problem.settings.temperature
    space = choice.method.spaces[0]
    query, support = zero_shot, None
    if choice.method.support == "unused":
        shots = Shots.none(problem.store.dimension)
    if space == "embedding":
        query = np.concatenate([block for _, block in problem.store.unit_blocks(rows)])
    if len(shots):
        support = shots.embeddings
        if space == "probability":
            support = zero_shot_probabilities(support, problem.class_embeddings, temperature)
    seen = problem.view if getattr(choice.method, "uses_view", False) else None
    return Task(
        query=query,
        zero_shot=zero_shot,
        support=support,
        support_labels=shots.labels if len(shots) else None,
        class_embeddings=problem.class_embeddings,
        view=None if seen is None else seen.take(rows),
        support_view=shots.view if seen is not None and len(shots) else None,
        temperature=temperature,
        space=space,
        partial_support=True,
    )


def _fill(solution: Solution, rows: Rows, answer: Float32[np.ndarray, "image class"]) -> None:
    for part in blocks(*answer.shape):
        put(solution.probabilities, rows[part], answer[part])
        solution.label[rows[part]], solution.top[rows[part]] = top_two(answer[part])
        solution.entropy[rows[part]] = entropy_share(answer[part])


def _fix(problem: Problem, solution: Solution) -> None:
    """Give corrected images the label of their correction."""
    for row, index in problem.fixed.items():
        known = index != UNKNOWN
        certain = np.full((1, problem.n_classes), 0.0 if known else 1.0 / problem.n_classes)
        if known:
            certain[0, index] = 1.0
        put(solution.probabilities, np.array([row]), certain.astype(np.float32))
        solution.label[row] = index
        solution.top[row] = (1.0, 0.0) if known else (0.0, 0.0)
        solution.entropy[row] = 0.0 if known else 1.0
        solution.doubt[row] = 0.0
