"""The EM loop of all mixtures: block majorization-minimization of the objective (Algorithm 2).

    minimize  - sum_nk u_nk log p(x_n | theta_k)     (support and query)
              + sum_nk u_nk log u_nk                 (the barrier, soft only)
              - w |Q| sum_k pi_k log pi_k            (partition complexity)

over parameters theta, then assignments u of the queries; pi is the mean of u. Every step works
on sufficient statistics, and only on what changed: a class whose statistics are the same as when
it was last fitted keeps its parameters (`components`). An iteration is one pass over the queries
(`queries`), which need not be in memory: beside blocks of bounded size, there are a few arrays of
class x statistic. So the state of a batch is these arrays, small enough to be kept before each
pass, and a loop that was stopped goes on with them. If the log densities are kept, which is one
array of the size of the query's probabilities, only the columns of the classes that changed are
computed again.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from transduce.mixtures.assignment import log_proportions, partition_complexity
from transduce.mixtures.components import SAME, Components, PreparedSupport
from transduce.mixtures.expectation import (
    ClassSums,
    PartSums,
    assign_and_sum,
    assignments_chunk,
    start_chunk,
)
from transduce.mixtures.family import ComponentFamily, Statistics
from transduce.mixtures.queries import Kept, MixtureBatch, Queries, middle
from transduce.mixtures.scores import CROWDED, Step
from transduce.simplex.passes import Checkpoint, Passes, Work, in_threads
from transduce.simplex.threads import one_blas_thread


@dataclass(frozen=True)
class MixtureFit:
    """Result of `fit_mixture`: assignments, fitted classes, and how they were reached."""

    assignments: Float[np.ndarray, "query class"] | None  # if they were to be kept
    clusters: Int[np.ndarray, " query"]  # the largest class of each query
    parameters: Float[np.ndarray, "class parameter"]
    log_prior: Float[np.ndarray, " class"]  # w log pi, as the last assignments used it
    objective: tuple[float, ...]
    iterations: int
    converged: bool
    batch: MixtureBatch
    step: Step  # the last one


def fit_mixture(
    query: Queries,
    start: Queries | None,
    family: ComponentFamily,
    *,
    n_classes: int,
    hard: bool,
    weight: float,
    max_iter: int,
    uniform_start: bool = False,
    single_products: bool = False,
    support: PreparedSupport | None = None,
    keep: bool = True,
    passes: Passes = in_threads,
    checkpoint: Checkpoint | None = None,
) -> MixtureFit:
    """Fit a mixture to the queries and assign each of them.

    Parameters
    ----------
    query : Queries
        The unlabeled rows (query, feature).
    start : Queries or None
        First assignments (query, class); None: start from the classes as `support` alone fits them.
    family : ComponentFamily
        The densities of the classes.
    n_classes : int
        Number of classes.
    hard : bool
        One-hot assignments rather than soft ones.
    weight : float
        w, of log pi in an assignment.
    max_iter : int
        Iterations, at most.
    uniform_start : bool, default=False
        Leave log pi out of the first assignment, rather than take it from `start`.
    single_products : bool, default=False
        Form the log densities of queries in float32, if they are more than a block, by products in
        float32 of what differs between classes. Sums are float64 in any case.
    support : PreparedSupport, optional
        The shots, whose assignments are held fixed.
    keep : bool, default=True
        Keep an array (query, class), first for log densities and then for the assignments. False:
        nothing of that size is kept, and the log densities of all classes are formed in every pass.
    passes : Passes, optional
        Who works on the chunks of the queries; by default threads of this process. Others need
        `keep=False`.
    checkpoint : Checkpoint, optional
        Where the fitted classes are kept before each pass; the loop goes on from what is found
        there, to the same answer to the bit. Needs `keep=False`.

    Returns
    -------
    MixtureFit
        `converged` is False if anything still changed in the last iteration.
    """
    first = query.rows(slice(0, 1))
    batch = MixtureBatch(query, start, family, n_classes, hard, family.statistic(first).shape[1])
    chunks = batch.chunks()
    several = len(chunks) > 1 or len(batch.blocks(chunks[0])) > 1
    if several and single_products and first.dtype == np.float32:
        batch = replace(batch, center=middle(query, family))
    if keep:
        batch = replace(batch, kept=Kept(len(query), n_classes, first.dtype))
    components = Components(family, n_classes, query.width, batch.width, support)
    run = _Summed(batch, chunks, passes)
    # Several blocks go over threads, each with its own products.
    with one_blas_thread(0) if several else nullcontext():
        objective, step, converged = _alternate(
            run,
            components,
            weight=weight,
            max_iter=max_iter,
            uniform_start=uniform_start,
            checkpoint=checkpoint,
        )
        if batch.kept is not None:
            list(in_threads(assignments_chunk, batch, step.log_prior, chunks))
    return MixtureFit(
        assignments=None if batch.kept is None else batch.kept.densities,
        clusters=run.clusters,
        parameters=components.parameters,
        log_prior=step.log_prior,
        objective=tuple(objective),
        iterations=len(objective),
        converged=converged,
        batch=batch,
        step=step,
    )


def _alternate(
    run: "_Summed",
    components: Components,
    *,
    weight: float,
    max_iter: int,
    uniform_start: bool,
    checkpoint: Checkpoint | None,
) -> tuple[list[float], Step, bool]:
    """Fit and assign in turns: the objective after each, the last step, and whether it settled."""
    batch, count = run.batch, len(run.batch.queries)
    every = np.arange(batch.n_classes)
    objective: list[float] = []
    step: Step | None = None
    saved = checkpoint.last() if checkpoint else None
    statistics = run.start() if saved is None else None
    while step is None or len(objective) < max_iter:
        if statistics is None:  # the classes were fitted before the loop was stopped
            assert saved is not None
            components.restore(saved)
            changed, prior, objective = every, saved["log_prior"], saved["objective"].tolist()
            run.few_compete = bool(saved["few_compete"])
        else:
            changed = components.maximize(statistics)
            prior = np.zeros(batch.n_classes)
            if step is not None or not uniform_start:
                prior = weight * log_proportions(statistics.mass, count)
            if step and not changed.size and np.allclose(prior, step.log_prior, SAME, SAME):
                return objective, step, True
            if checkpoint is not None:
                checkpoint.keep(
                    {
                        **components.arrays(),
                        "log_prior": prior,
                        "objective": np.array(objective),
                        "few_compete": np.array(run.few_compete),
                    }
                )
        columns = changed if step and batch.kept is not None else every
        step = Step.of(
            batch, components, columns, prior, few_compete=run.few_compete, first=not objective
        )
        statistics, reached = run.assign(step)
        objective.append(
            float(prior @ statistics.mass)
            + weight * count * partition_complexity(statistics.mass, count)
            - reached
            - components.support_likelihood
        )
    return objective, step, False


class _Summed:
    """Passes over the queries, and the sums of what they return."""

    def __init__(self, batch: MixtureBatch, chunks: list[slice], passes: Passes) -> None:
        self.batch, self._chunks, self._passes = batch, chunks, passes
        self._sums = ClassSums(batch.n_classes, batch.width)
        self.clusters = np.zeros(len(batch.queries), np.int32)
        self.few_compete = False  # for a query, in the last pass

    def start(self) -> Statistics:
        """Statistics of the first assignments; zero without them."""
        if self.batch.start is not None:
            self._run(start_chunk, None)
        return self._sums.statistics()

    def assign(self, step: Step) -> tuple[Statistics, float]:
        """Assign every query; return the statistics of that, and the maximum that was reached.

        The statistics are valid until the next call.
        """
        self._run(assign_and_sum, step)
        return self._sums.statistics(), self._sums.reached

    def _run(self, work: Work[PartSums], shared: Step | None) -> None:
        self._sums.clear()
        parts = self._passes(work, self.batch, shared, self._chunks)
        for chunk, part in zip(self._chunks, parts, strict=True):
            self._sums.add(part)
            if part.clusters is not None:
                self.clusters[chunk] = part.clusters
        entries = len(self.clusters) * self.batch.n_classes
        self.few_compete = self._sums.entries <= CROWDED * entries
