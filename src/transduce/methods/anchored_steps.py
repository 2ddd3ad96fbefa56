"""The steps of `Anchored`: what a batch is, what one step knows of its classes, and assignments."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float, Float32, Float64, Int

from transduce.methods.neighbors import mutual_graph
from transduce.methods.text_guess import class_embeddings_of
from transduce.mixtures.collapsed import (
    CollapsedGaussians,
    Sparse,
    deviations_within,
    whitening,
)
from transduce.mixtures.presence import PresencePrior
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import over_slices
from transduce.task import Task

if TYPE_CHECKING:
    from transduce.methods.anchored import Anchored

NEGLIGIBLE = 1e-5  # of an image; smaller shares of it are counted, but not stored
BLOCK_ENTRIES = 1 << 18  # image x class worked on at a time: a megabyte, which stays in the cache
EVIDENCE = ("margin", "text", "image", "votes")  # of a label; see `Anchored`
LEAST_WHITENING = 1e-4  # of a share below this, whitening would change no digit that counts
KEPT_TEXT = 1 << 26  # image x class; larger batches compute the text's scores anew in every step

Result = TypeVar("Result")
Rows = Float32[np.ndarray, "row feature"]
Scores = Float32[np.ndarray, "row class"]


@dataclass(frozen=True)
class Assignments:
    """Sparse rows z (image, class), and what is summed over all of them before small ones go."""

    z: Sparse
    mass: Float64[np.ndarray, " class"]
    present: Float64[np.ndarray, " class"]


@dataclass(frozen=True)
class AnchoredBatch:
    """What stays the same from step to step; all rows are unit vectors, shots after queries."""

    queries: Rows
    shots: Rows
    shot_labels: Int[np.ndarray, " shot"]
    known: Sparse  # (shot, class), one-hot
    texts: Rows  # (class, feature), times the text's scale
    centered: Rows  # the rows of image evidence, minus their middle
    middle: Rows
    votes: Sparse  # (query, row), what each row's vote weighs
    names: Rows | None
    kept_text: Scores | None

    @classmethod
    def of(cls, method: "Anchored", task: Task) -> "AnchoredBatch":
        """The batch of a task; refused without class embeddings."""
        queries, texts = unit_float32(task.query), unit_float32(class_embeddings_of(method, task))
        shots, labels = queries[:0], np.zeros(0, np.int64)
        if task.support is not None and task.support_labels is not None:
            shots, labels = unit_float32(task.support), task.support_labels
        seen, seen_shots = queries, shots
        if task.view is not None:
            seen = unit_float32(task.view)
            seen_shots = seen[:0] if task.support_view is None else unit_float32(task.support_view)
        middle = seen.mean(0)
        if len(shots):
            middle = 0.5 * (middle + seen_shots.mean(0))
        rows = np.concatenate([seen, seen_shots])
        known = sp.csr_array(
            (np.ones(len(labels), np.float32), (np.arange(len(labels)), labels)),
            shape=(len(labels), task.n_classes),
        )
        scaled = np.float32(method.text_scale) * texts
        return cls(
            queries=queries,
            shots=shots,
            shot_labels=labels,
            known=known,
            texts=scaled,
            centered=rows - middle,
            middle=middle,
            votes=mutual_graph(rows, method.neighbors)[: len(queries)],
            names=_centered_directions(texts) if method.names_foretell_means else None,
            kept_text=queries @ scaled.T if len(queries) * len(texts) <= KEPT_TEXT else None,
        )

    @property
    def n_queries(self) -> int:
        """Number of images to label."""
        return len(self.queries)

    @property
    def n_classes(self) -> int:
        """Number of classes, present or not."""
        return len(self.texts)

    def text(self, rows: slice) -> Scores:
        """L, the text's scores of these queries (row, class)."""
        return self.text_of(self.queries[rows]) if self.kept_text is None else self.kept_text[rows]

    def text_of(self, images: Rows) -> Scores:
        """The text's scores of any images (row, class)."""
        return images @ self.texts.T

    def map(self, work: Callable[[slice], Result]) -> list[Result]:
        """`work` on blocks of the queries, over threads; the results in order.

        The blocks depend on the batch alone, so that sums over them are the same everywhere.
        """
        step = max(1, BLOCK_ENTRIES // self.n_classes)
        starts = range(0, self.n_queries, step)
        blocks = [slice(start, min(start + step, self.n_queries)) for start in starts]
        return over_slices(work, blocks)


@dataclass(frozen=True)
class AnchoredState:
    """One step: what is known of the classes, from the assignments of the step before."""

    method: "Anchored"
    batch: AnchoredBatch
    assignments: Assignments
    prior: PresencePrior
    scale: Float32[np.ndarray, " feature"] | None = None
    root: Float32[np.ndarray, "feature feature"] | None = None  # C of the whitening
    rows: Rows | None = None  # scaled and whitened, queries and shots
    classes: CollapsedGaussians | None = None
    agreement: float = 0.0
    image_weight: float = 0.0
    voted: Sparse | None = None

    def every_z(self) -> Sparse:
        """Assignments of queries and shots."""
        if not len(self.batch.shots):
            return self.assignments.z
        return sp.vstack([self.assignments.z, self.batch.known], format="csr")

    def every_mass(self) -> Float64[np.ndarray, " class"]:
        """How many queries and shots each class has (class,)."""
        return self.assignments.mass + self.batch.known.sum(0)

    def with_prior(self) -> "AnchoredState":
        """The prior fitted to the counts."""
        counted = self.assignments
        prior = self.prior.refitted(counted.mass, counted.present, self.batch.n_queries)
        return replace(self, prior=prior)

    def rescaled(self) -> "AnchoredState":
        """Features scaled to one variance within classes, and decorrelated as far as trusted."""
        method, centered = self.method, self.batch.centered
        z, mass = self.every_z(), self.every_mass()
        scale = deviations_within(centered, z, mass, method.variance_prior)
        rows, root = centered / scale, None
        trusted = self.agreement**8 * len(rows)
        share = trusted / (trusted + method.correlation_prior * rows.shape[1])
        if share > LEAST_WHITENING:
            root = whitening(rows, z, mass, share)
            rows = solve_rows(root, rows)
        return replace(self, scale=scale, root=root, rows=rows)

    def with_classes(self, measured: slice | None = None) -> "AnchoredState":
        """The classes as Gaussians, with variances of the queries or of the `measured` rows."""
        assert self.rows is not None
        classes = CollapsedGaussians.fit(
            self.rows,
            self.every_z(),
            self.every_mass(),
            measured or slice(0, self.batch.n_queries),
            self.batch.names,
        )
        return replace(self, classes=classes)

    def weighted(self, shot_weight: float | None) -> "AnchoredState":
        """The weight of the image evidence, and the votes."""
        weight = self.method.dimensions * self.agreement**2
        if shot_weight is not None:
            shots_of = self.batch.known.sum(0)
            part = self.assignments.mass[shots_of > 1].sum() / self.batch.n_queries
            weight = (1.0 - part) * weight + part * shot_weight
        voted = sp.csr_array(self.batch.votes @ self.every_z())
        voted *= np.float32(self.prior.weight * self.method.vote_weight * self.voters())
        return replace(self, image_weight=weight, voted=voted)

    def voters(self) -> float:
        """The share of an image's neighbors that its class can have, at most 1.

        A class of two images has one other for each of them: more neighbors than that are of
        other classes, whatever they look like.
        """
        if not self.method.limit_votes:
            return 1.0
        present = self.assignments.present
        shots = float(self.batch.known.sum(0) @ present)
        others = (self.batch.n_queries + shots) / max(float(present.sum()), 1.0) - 1.0
        return min(1.0, max(0.0, others) / self.method.neighbors)

    def density(self, rows: slice) -> Scores:
        """Log predictive density of queries or shots under each class, themselves left out."""
        assert self.classes is not None
        assert self.rows is not None
        return self.classes.log_density(self.rows[rows], self.every_z()[rows].toarray())

    def parts(self, rows: slice) -> tuple[Scores, Scores, Scores]:
        """The scores of text, of counts, and of images with their weight."""
        counts = self.prior.scores(self.assignments.z[rows].toarray())
        image = np.float32(self.image_weight) * self.density(rows)
        return self.batch.text(rows), counts, image

    def votes(self, rows: slice) -> Scores:
        """The scores of the neighbors' votes."""
        assert self.voted is not None
        return self.voted[rows].toarray()

    def evidence(
        self,
        rows: slice,
        order: Int[np.ndarray, "row best"],
        text: Scores,
        image: Scores,
        joint: Scores,
    ) -> dict[str, Float32[np.ndarray, " row"]]:
        """What speaks for the first class of `order`, by the names of `EVIDENCE`."""
        label = order[:, :1]
        best = np.take_along_axis(joint, order[:, :2], 1)
        votes = self.batch.votes[rows]
        agreeing = sp.csr_array(votes @ self.every_z())[np.arange(len(label)), label[:, 0]]
        voters = np.maximum(votes.sum(1), np.finfo(np.float32).tiny)
        parts = (best[:, 0] - best[:, 1], _log_share(text, label), _log_share(image, label))
        return dict(zip(EVIDENCE, (*parts, agreeing / voters), strict=True))

    def scores(self, rows: slice) -> Scores:
        """The scores of the step, all parts together."""
        if self.classes is None:
            counts = self.prior.scores(self.assignments.z[rows].toarray())
            return counts + self.batch.text(rows)
        text, counts, image = self.parts(rows)
        image += text
        image += counts
        image += self.votes(rows)
        return image


def _log_share(scores: Scores, label: Int[np.ndarray, "row one"]) -> Float32[np.ndarray, " row"]:
    """The logarithm of softmax(scores) of one class a row."""
    others = np.minimum(scores - np.take_along_axis(scores, label, 1), np.float32(80.0))
    return -np.log(np.exp(others).sum(1))


def unit_float32(rows: Float[np.ndarray, "row feature"]) -> Rows:
    """Unit vectors in float32."""
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _centered_directions(texts: Rows) -> Rows:
    """Directions of the class embeddings from their middle."""
    centered = texts - texts.mean(0)
    return centered / (np.linalg.norm(centered, axis=1, keepdims=True) + np.float32(1e-12))


def solve_rows(
    root: Float32[np.ndarray, "feature feature"], rows: Float[np.ndarray, "row feature"]
) -> Float[np.ndarray, "row feature"]:
    """C^-1 y for each row y."""
    solved = scipy.linalg.solve_triangular(root, rows.T, lower=True, overwrite_b=False)
    return np.ascontiguousarray(solved.T)


def assign_blocks(batch: AnchoredBatch, scores: Callable[[slice], Scores]) -> Assignments:
    """Z = softmax(scores), block by block."""
    n_classes = batch.n_classes

    def work(rows: slice) -> tuple[Sparse, Float64[np.ndarray, " class"], np.ndarray]:
        z = softmax(scores(rows))
        mass = z.sum(0, dtype=np.float64)
        kept = z > NEGLIGIBLE
        ends = np.concatenate([[0], np.cumsum(kept.sum(1))])
        stored = sp.csr_array((z[kept], np.nonzero(kept)[1], ends), shape=z.shape)
        # log(1 - z) of those stored; -z stands for it in the others.
        share = np.minimum(stored.data, 0.9999).astype(np.float64)
        exact = np.bincount(stored.indices, np.log1p(-share) + share, minlength=n_classes)
        return stored, mass, exact - mass

    stored, masses, absences = zip(*batch.map(work), strict=True)
    present = -np.expm1(np.minimum(np.sum(absences, axis=0), 0.0))
    return Assignments(sp.vstack(stored, format="csr"), np.sum(masses, axis=0), present)
