"""Mixtures of a batch of any size: nothing as large as query x class is in memory.

The rows are read where they are, softmax(T cos) is formed a block at a time, and the same EM loop
as in memory (`mixtures/em.py`) runs over the chunks, on threads or on a cluster. Kept are the
cluster of each query and sums of each class.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.methods.anchored.batch import RowSource
from transduce.methods.matching import match_votes
from transduce.methods.mixture import MixtureMethod, MixtureModel, in_cluster_classes
from transduce.mixtures.components import PreparedSupport
from transduce.mixtures.em import MixtureFit
from transduce.mixtures.queries import ArrayQueries, MixtureBatch, Queries
from transduce.mixtures.scores import Step, scores_of
from transduce.simplex.passes import Checkpoint, Passes, chunks_of, in_threads
from transduce.simplex.probabilities import blocks, softmax, zero_shot_probabilities
from transduce.simplex.threads import a_few_at_a_time, one_blas_thread
from transduce.task import Trace

Block = Float32[np.ndarray, "row class"]


@dataclass(frozen=True)
class ZeroShotRows:
    """softmax(T cos) of images, formed when it is asked for."""

    images: RowSource
    texts: Float32[np.ndarray, "class feature"]
    temperature: float

    def __len__(self) -> int:
        return len(self.images)

    @property
    def width(self) -> int:
        """Number of classes."""
        return len(self.texts)

    def rows(self, chosen: slice) -> Block:
        """The probabilities of some images, in float32."""
        images = self.images.images(chosen)
        return zero_shot_probabilities(images, self.texts, self.temperature)

    def kept(self) -> ArrayQueries:
        """The probabilities in memory, to the bit: formed in the same blocks as by `rows`."""
        array = np.empty((len(self), self.width), np.float32)
        with one_blas_thread(0):
            for _ in in_threads(_keep, self, array, chunks_of(len(self))):
                pass
        return ArrayQueries(array)


def _keep(queries: ZeroShotRows, array: Block, chunk: slice) -> None:
    def work(rows: slice) -> None:
        array[rows] = queries.rows(rows)

    list(a_few_at_a_time(work, _blocks(chunk, queries.width)))


@dataclass(frozen=True)
class LargeMixture:
    """The answer of `solve_mixture`; `probabilities` reads the rows once more."""

    trace: Trace
    model: MixtureModel
    clusters: Int[np.ndarray, " query"]
    batch: MixtureBatch
    step: Step  # the last one

    def tempered(
        self, reduced: Callable[[Block], Any], passes: Passes = in_threads
    ) -> Iterator[Any]:
        """`reduced` of the class probabilities of each block of queries, in their order.

        As of `MixtureModel.tempered`: log densities are divided by the number of features.
        """
        shared = _Report(self.step, self.model.class_of_cluster, reduced)
        with one_blas_thread(0):
            for part in passes(_report, self.batch, shared, self.batch.chunks()):
                yield from part


@dataclass(frozen=True)
class _Report:
    step: Step
    class_of_cluster: Int[np.ndarray, " cluster"]
    reduced: Callable[[Block], Any]


def solve_mixture(
    method: MixtureMethod,
    queries: Queries,
    support: Float[np.ndarray, "shot class"] | None = None,
    support_labels: Int[np.ndarray, " shot"] | None = None,
    *,
    passes: Passes = in_threads,
    checkpoint: Checkpoint | None = None,
) -> LargeMixture:
    """Label a batch of any size as `method.predict` would.

    Parameters
    ----------
    method : MixtureMethod
        A mixture that starts from zero-shot, in the probability space.
    queries : Queries
        softmax(T cos) of the images: `ZeroShotRows`, or an array.
    support : array of shape (shot, class), optional
        The same of labeled shots.
    support_labels : array of int of shape (shot,), optional
        Their classes.
    passes : Passes, optional
        Who works on the chunks; by default threads of this process.
    checkpoint : Checkpoint, optional
        Where the classes are kept before each iteration's pass; the batch goes on from what is
        found there.

    Returns
    -------
    LargeMixture
        Trace and model as of a `Prediction`, and the cluster of each query.
    """
    n_classes = queries.width
    recipe = method.recipe(n_classes)
    shots = None
    if support is not None and support_labels is not None:
        shots = PreparedSupport.solve(recipe.family, support, support_labels, n_classes)
    fit = recipe.fit(
        queries, queries, n_classes, shots, keep=False, passes=passes, checkpoint=checkpoint
    )
    anchored = np.zeros(n_classes, bool) if shots is None else shots.statistics.mass > 0
    class_of_cluster = np.arange(n_classes)
    if recipe.matching != "none" and not anchored.all():
        members, votes = _votes(fit, queries, passes)
        class_of_cluster = match_votes(members, votes, recipe.matching, anchored)
    model = MixtureModel(recipe.family, fit.parameters, fit.log_prior, class_of_cluster)
    trace = Trace(fit.objective, fit.iterations, fit.converged)
    return LargeMixture(trace, model, fit.clusters, fit.batch, fit.step)


def _votes(
    fit: MixtureFit, queries: Queries, passes: Passes
) -> tuple[Int[np.ndarray, " cluster"], Float[np.ndarray, "cluster class"]]:
    """The clusters with members, and the mean probabilities of these."""
    sums = np.zeros((queries.width, queries.width))
    with one_blas_thread(0):
        for present, total in passes(_vote, queries, fit.clusters, chunks_of(len(queries))):
            sums[present] += total
    counts = np.bincount(fit.clusters, minlength=queries.width)
    members = np.flatnonzero(counts)
    return members, sums[members] / counts[members, np.newaxis]


def _vote(
    queries: Queries, clusters: Int[np.ndarray, " query"], chunk: slice
) -> tuple[Int[np.ndarray, " present"], Float[np.ndarray, "present class"]]:
    """The clusters in a chunk, and the sums of the probabilities of their members."""
    present, index = np.unique(clusters[chunk], return_inverse=True)
    sums = np.zeros((len(present), queries.width))

    def work(rows: slice) -> tuple[Int[np.ndarray, " here"], Float[np.ndarray, "here class"]]:
        here = index[rows.start - chunk.start : rows.stop - chunk.start]
        order = np.argsort(here, kind="stable")
        found, first = np.unique(here[order], return_index=True)
        return found, np.add.reduceat(queries.rows(rows)[order], first, dtype=np.float64)

    for found, total in a_few_at_a_time(work, _blocks(chunk, queries.width)):
        sums[found] += total
    return present, sums


def _report(batch: MixtureBatch, report: _Report, chunk: slice) -> list[Any]:
    """What is reported of the blocks of a chunk."""

    def work(rows: slice) -> Any:  # noqa: ANN401 - whatever `reduced` returns
        features = batch.queries.rows(rows)
        scores, _ = scores_of(batch, report.step, rows, features, batch.statistic(features))
        scores -= scores.max(1, keepdims=True)
        scores /= features.shape[1]
        tempered = in_cluster_classes(scores, report.class_of_cluster)
        return report.reduced(softmax(tempered).astype(np.float32))

    return list(a_few_at_a_time(work, batch.blocks(chunk)))


def _blocks(chunk: slice, width: int) -> list[slice]:
    parts = blocks(chunk.stop - chunk.start, width)
    return [slice(chunk.start + part.start, chunk.start + part.stop) for part in parts]
