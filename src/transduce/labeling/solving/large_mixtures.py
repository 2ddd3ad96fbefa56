"""Large batches by the paper's mixtures: rows stay in the store, probabilities come in blocks."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float32, Int

from transduce.labeling.problem import (
    BestClasses,
    Problem,
    Rows,
    Shots,
    Solution,
    entropy_share,
    likeliest_of,
    put_best,
    top_two,
)
from transduce.labeling.solving.rows import KEPT_BYTES, batch_rows
from transduce.methods import Method
from transduce.methods.large_mixture import LargeMixture, ZeroShotRows, solve_mixture
from transduce.methods.mixture import MixtureMethod
from transduce.simplex.passes import Checkpoint, Passes
from transduce.simplex.probabilities import zero_shot_probabilities

IN_MEMORY = 1 << 24  # image x class; smaller batches are one task in memory


@dataclass(frozen=True, slots=True)
class _Reported:
    """The columns of some images."""

    label: Int[np.ndarray, " row"]
    top: Float32[np.ndarray, "row two"]
    entropy: Float32[np.ndarray, " row"]
    classes: Int[np.ndarray, "row best"] | None  # None: the probabilities are those of all
    probabilities: Float32[np.ndarray, "row best"]


def is_large(method: Method | type[Method], n_images: int, n_classes: int) -> bool:
    """Whether these images are more than a task in memory, and the method can do without one."""
    kind = method if isinstance(method, type) else type(method)
    if not issubclass(kind, MixtureMethod) or kind.support == "needed":
        return False
    return kind.spaces[0] == "probability" and n_images * n_classes > IN_MEMORY


def solve_large(
    problem: Problem,
    rows: Rows,
    shots: Shots,
    method: MixtureMethod,
    solution: Solution,
    passes: Passes,
    checkpoint: Checkpoint | None = None,
) -> LargeMixture:
    """Solve a batch whose rows stay where they are; fills the columns of its images."""
    texts, temperature = problem.class_embeddings, problem.settings.temperature
    queries = ZeroShotRows(batch_rows(problem.store, None, rows), texts, temperature)
    few = 4 * len(rows) * problem.n_classes <= KEPT_BYTES
    support = None
    if len(shots):
        support = zero_shot_probabilities(shots.embeddings, texts, temperature)
    answer = solve_mixture(
        method,
        queries.kept() if few else queries,
        support,
        shots.labels if len(shots) else None,
        passes=passes,
        checkpoint=checkpoint,
    )
    kept = solution.probabilities
    best = kept.classes.shape[1] if isinstance(kept, BestClasses) else None
    done = 0
    for part in answer.tempered(partial(_report, best=best), passes):
        here = rows[done : done + len(part.label)]
        done += len(part.label)
        solution.label[here], solution.top[here] = part.label, part.top
        solution.entropy[here] = part.entropy
        if part.classes is not None:
            put_best(kept, here, part.classes, part.probabilities)
        elif not isinstance(kept, BestClasses):
            kept[here] = part.probabilities
    return answer


def _report(block: Float32[np.ndarray, "row class"], best: int | None) -> _Reported:
    """The columns of a block of images, and its probabilities or the best of them."""
    label, top = top_two(block)
    entropy = entropy_share(block)
    if best is None:
        return _Reported(label, top, entropy, None, block)
    return _Reported(label, top, entropy, *likeliest_of(block, best))
