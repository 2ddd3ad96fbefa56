"""The steps of `Anchored`: what one of them knows of the classes, from sums over all chunks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Float64

from transduce.methods.anchored import passes
from transduce.methods.anchored.batch import AnchoredBatch, Rows
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.passes import ChunkAssignments
from transduce.methods.anchored.past import Past, ShotFit
from transduce.methods.anchored.scores import ImageEvidence, StepTables
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.mixtures.within import (
    Scaling,
    Square,
    class_sums,
    entry_products,
    row_squares,
    scaling_within,
    variance_terms,
    variance_within,
)
from transduce.simplex.passes import Passes
from transduce.simplex.threads import product

if TYPE_CHECKING:
    from transduce.methods.anchored.anchored import Anchored

LEAST_PAST = 100.0  # images; the past counts as many as the new images, or these
MOST_DIMENSIONS = 3.2  # times those of images and text that agree as the text expects

PerClass = Float64[np.ndarray, " class"]


@dataclass(frozen=True)
class Assignments:
    """Sparse rows z (query, class), and what is summed over all of them before small ones go."""

    z: StoredRows
    mass: PerClass
    present: PerClass
    sums: Float64[np.ndarray, "class feature"] | None  # of the compared rows

    @classmethod
    def of(cls, chunks: Iterator[ChunkAssignments]) -> "Assignments":
        """The sums over chunks, in their order."""
        parts: list[Entries] = []
        mass = absence = np.zeros(1)
        sums = None
        for chunk in chunks:
            parts.append(chunk.z)
            mass, absence = mass + chunk.mass, absence + chunk.absence
            if chunk.sums is not None:
                sums = chunk.sums.astype(np.float64) if sums is None else sums + chunk.sums
        return cls(StoredRows(tuple(parts)), mass, -np.expm1(np.minimum(absence, 0.0)), sums)


@dataclass(frozen=True)
class Moments:
    """Sums over all rows, queries and shots, that no assignment changes."""

    products: Float64[np.ndarray, "feature feature"]  # with those of the past
    shots: Rows  # compared, minus their middle
    shot_mass: PerClass
    shot_sums: Float64[np.ndarray, "class feature"]

    @classmethod
    def of(cls, batch: AnchoredBatch, run: Passes, past: Past | None = None) -> "Moments":
        """One pass over the batch."""
        shots = batch.compared_shots - batch.middle
        products = (shots.T @ shots).astype(np.float64)
        if past is not None:
            products += past.products
        for part in run(passes.row_products, batch, None, batch.chunks()):
            products += part
        return cls.with_shots(batch, products)

    @classmethod
    def with_shots(
        cls, batch: AnchoredBatch, products: Float64[np.ndarray, "feature feature"]
    ) -> "Moments":
        """The products, and the sums over the shots."""
        shots = batch.compared_shots - batch.middle
        mass = np.bincount(batch.shot_labels, minlength=batch.n_classes).astype(np.float64)
        return cls(products, shots, mass, class_sums(batch.known, shots).astype(np.float64))


@dataclass(frozen=True)
class AnchoredState:
    """One step: what is known of the classes, from the assignments of the step before."""

    method: "Anchored"
    batch: AnchoredBatch
    run: Passes
    moments: Moments
    assignments: Assignments
    prior: PresencePrior
    scaling: Scaling | None = None
    lengths: Float32[np.ndarray, " query"] | None = None  # |y|^2 of the scaled, whitened rows y
    classes: CollapsedGaussians | None = None
    agreement: float = 0.0
    text_confidence: float = 1.0
    image_weight: float = 0.0
    shot_weight: float | None = None
    past: Past | None = None  # sums of images that were labeled before, about the batch's middle
    before: Past | None = None  # the same, if all its images are in the batch once more, too
    trusted: PerClass | None = None  # share of the past that each class's Gaussian believes
    within_share: float = 0.0  # of the total variance
    shots_right: float = 0.0  # share of shots named rightly, each left out
    shots_part: float = 0.0  # share of the queries in classes with two shots, whom that concerns

    @classmethod
    def first(
        cls,
        method: "Anchored",
        batch: AnchoredBatch,
        moments: Moments,
        run: Passes,
        before: Past | None = None,
    ) -> "AnchoredState":
        """Assignments by the text alone."""
        assigned = Assignments.of(run(passes.assign_chunk, batch, StepTables(), batch.chunks()))
        prior = PresencePrior(method.bias_variance)
        past = None if before is None else before.sums
        return cls(method, batch, run, moments, assigned, prior, past=past, before=before)

    def assigned(self, *, with_sums: bool) -> "AnchoredState":
        """New assignments, by the scores of this step."""
        step = replace(self.step(), with_sums=with_sums)
        chunks = self.run(passes.assign_chunk, self.batch, step, self.batch.chunks())
        return replace(self, assignments=Assignments.of(chunks))

    def with_prior(self) -> "AnchoredState":
        """The prior fitted to the counts."""
        counted, past = self.assignments, self.past
        mass, present, total = counted.mass, counted.present, float(self.batch.n_queries)
        if past is not None:
            # Which classes there are stays, how many of each may be another matter in each part.
            worth = min(past.count, max(total, LEAST_PAST))
            mass = mass + past.mass * (worth / max(past.count, 1e-12))
            present = 1.0 - (1.0 - present) * (1.0 - past.present)
            total += worth
        return replace(self, prior=self.prior.refitted(mass, present, total))

    def every_mass(self) -> PerClass:
        """How many images and shots each class has (class,), those of the past with them."""
        mass = self.assignments.mass + self.moments.shot_mass
        return mass if self.past is None else mass + self._believed() * self.past.every_mass

    def every_shot_mass(self) -> PerClass:
        """How many shots each class has (class,), those of the past with them."""
        mass = self.moments.shot_mass
        return mass if self.past is None else mass + self.past.shot_mass

    def n_rows(self) -> float:
        """How many images and shots there are, those of the past with them."""
        n_rows = self.batch.n_queries + len(self.moments.shots)
        return n_rows if self.past is None else n_rows + self.past.rows

    def every_sum(self) -> Float64[np.ndarray, "class feature"]:
        """The sums of the compared rows of queries, shots and the past, unscaled."""
        sums = self.assignments.sums
        assert sums is not None
        if len(self.moments.shots):
            sums = sums + self.moments.shot_sums
        if self.past is None:
            return sums
        return sums + self._believed()[:, np.newaxis] * self.past.every_sums

    def _believed(self) -> PerClass:
        return np.ones(self.batch.n_classes) if self.trusted is None else self.trusted

    def with_trust(self) -> "AnchoredState":
        """How far the past of each class is believed, by the images that the text gives it now."""
        past, sums = self.past, self.assignments.sums
        if past is None or sums is None:
            return self
        within, _ = self._with_past(0.0)
        trusted = past.trusted(self.assignments.mass, sums, self._transform(), within)
        return replace(self, trusted=trusted)

    def rescaled(self) -> "AnchoredState":
        """Features scaled to one variance within classes, and decorrelated as far as trusted."""
        method, n_rows = self.method, self.n_rows()
        # Labels of shots are right; of each class, one of them goes into its mean.
        spare = float(np.maximum(self.every_shot_mass() - 1.0, 0.0).sum())
        trusted = self.agreement**8 * n_rows + method.shot_worth * spare
        width, basis = len(self.batch.in_features.middle), self.batch.basis
        scaling = (scaling_within if basis is None else basis.scaling_within)(
            self.moments.products,
            self.every_sum(),
            self.every_mass(),
            n_rows,
            pseudo_images=method.variance_prior,
            share=trusted / (trusted + method.correlation_prior * width),
        )
        return replace(self, scaling=scaling, lengths=None)

    def with_classes(self) -> "AnchoredState":
        """The classes as Gaussians, with variances of the queries."""
        transform, mass = self._transform(), self.every_mass()
        sums = self._transformed_sums()
        spread = passes.Spread(
            z=self.assignments.z,
            mass=mass,
            squares=row_squares(sums).astype(np.float64),
            table=product(sums, transform) if self._folded() else sums,
            transform=transform,
            folded=self._folded(),
            lengths=self.lengths,
        )
        found = self.run(passes.spread, self.batch, spread, self.batch.chunks())
        lengths, weighted, weight = zip(*found, strict=True)
        every = np.concatenate(lengths)
        total = float(every.sum(dtype=np.float64)) / len(every) + 1e-12
        within = variance_within(sum(weighted), sum(weight), total)
        if self.past is not None:
            within, total = self._with_past(within)
        return replace(
            self,
            lengths=every,
            classes=self._classes(sums, within, total),
            within_share=within / total,
        )

    def _with_past(self, within: float) -> tuple[float, float]:
        """The variances within classes and in all, over these images and those of the past."""
        assert self.past is not None
        wide = self._transform().astype(np.float64)
        total = float(((wide @ self.moments.products) * wide).sum()) / self.n_rows() + 1e-12
        share = self.batch.n_queries / (self.batch.n_queries + self.past.count)
        share = share if within else 0.0
        mixed = share * within + (1.0 - share) * self.past.within_share * total
        return variance_within(mixed, 1.0, total), total

    def shot_densities(self) -> Float32[np.ndarray, "shot class"]:
        """Log density of each shot under each class, itself left out; variances of the shots."""
        mass, sums, known = self.every_mass(), self._transformed_sums(), self.batch.known
        shots = self.moments.shots @ self._transform().T
        lengths = row_squares(shots)
        squares = row_squares(sums).astype(np.float64)
        total = float(lengths.sum(dtype=np.float64)) / len(lengths) + 1e-12
        dots = entry_products(shots, sums, known)
        terms = variance_terms(known, dots, lengths, mass, squares)
        classes = self._classes(sums, variance_within(*terms, total), total)
        density = classes.log_density(shots)
        dots = entry_products(shots, classes.sums, known)
        own = np.arange(len(shots)), known.indices
        density[own] += classes.left_out(known.indices, known.data, dots, lengths)
        return density

    def _transform(self) -> Square:
        assert self.scaling is not None
        return self.scaling.transform

    def _transformed_sums(self) -> Rows:
        """S of scaled and whitened rows; most classes of a small batch have none."""
        assert self.scaling is not None
        sums = self.every_sum()
        stored = self.assignments.z.per_class()
        known = 0.0 if self.past is None else self.past.every_mass
        used = np.flatnonzero(stored + self.moments.shot_mass + known)
        if 2 * len(used) > len(sums):
            return self.scaling.applied(sums.astype(np.float32))
        transformed = np.zeros(sums.shape, np.float32)
        transformed[used] = self.scaling.applied(sums[used].astype(np.float32))
        return transformed

    def _classes(self, sums: Rows, within: float, total: float) -> CollapsedGaussians:
        return CollapsedGaussians.of(
            sums, self.every_mass(), within=within, total=total, names=self.batch.names
        )

    def _folded(self) -> bool:
        """Whether it is less work to transform the classes than the rows."""
        width, n_classes = len(self.moments.products), self.batch.n_classes
        return self.batch.n_queries * (width + n_classes) > 2 * n_classes * width

    def with_agreement(self) -> "AnchoredState":
        """The share of images whose answer by images and counts is that by text and counts.

        And the share that the text expects to be right.
        """
        step = replace(self, image_weight=self.method.dimensions).step()
        found = self.run(passes.agreeing, self.batch, step, self.batch.chunks())
        same, sure = zip(*found, strict=True)
        agreeing, expected, n = float(sum(same)), float(sum(sure)), float(self.batch.n_queries)
        if self.past is not None:
            n += self.past.count
            agreeing += self.past.agreement * self.past.count
            expected += self.past.text_confidence * self.past.count
        return replace(self, agreement=agreeing / n, text_confidence=expected / n)

    def weighted(self, shots: ShotFit | None) -> "AnchoredState":
        """The weight of the image evidence."""
        weight = self._trusted_dimensions()
        if shots is None:
            return replace(self, image_weight=float(weight))
        mass = self.assignments.mass
        if self.past is not None:
            mass = mass + self.past.mass
        part = float(mass[self.every_shot_mass() > 1].sum() / mass.sum())
        weight = (1.0 - part) * weight + part * shots.weight
        found = replace(self, shot_weight=shots.weight, shots_right=shots.right, shots_part=part)
        return replace(found, image_weight=float(weight))

    def _trusted_dimensions(self) -> float:
        """How many dimensions the image evidence counts as, by how often it agrees with the text.

        Where few classes are present, groups of images under a name that is not here agree with
        the text too, so that only agreement itself counts. Where all are, images that agree with
        the text more often than the text expects to be right are better than the text.
        """
        method, few = self.method, self.prior.weight
        as_measured = method.dimensions * self.agreement**2
        if not method.full_dimensions:
            return as_measured
        ratio = self.agreement / max(self.text_confidence, 1e-9)
        relative = min(method.full_dimensions * ratio**4, MOST_DIMENSIONS * method.full_dimensions)
        return few * as_measured + (1.0 - few) * relative

    def voters(self) -> float:
        """The share of an image's neighbors that its class can have, at most 1.

        A class of two images has one other for each of them: more neighbors than that are of
        other classes, whatever they look like.
        """
        if not self.method.limit_votes:
            return 1.0
        present = self.assignments.present
        shots = float(self.moments.shot_mass @ present)
        others = (self.batch.n_queries + shots) / max(float(present.sum()), 1.0) - 1.0
        return min(1.0, max(0.0, others) / self.method.neighbors)

    def step(self) -> StepTables:
        """What every chunk needs of the state."""
        evidence = None
        if self.classes is not None:
            assert self.lengths is not None
            sums, folded, transform = self.classes.sums, self._folded(), self._transform()
            table = product(sums, transform) if folded else sums
            evidence = ImageEvidence(self.classes, transform, folded, table, self.lengths)
        return StepTables(
            prior=self.prior,
            z=self.assignments.z,
            evidence=evidence,
            image_weight=self.image_weight,
            vote_weight=self.prior.weight * self.method.vote_weight * self.voters(),
        )
