"""Changes to `anchored` that are no settings: parts left out, and ideas that were tried.

Each is a function that returns what to replace for the time of a run: (class, attribute, other).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float64
from scipy.special import digamma, gammaln

from transduce.methods.anchored import Anchored
from transduce.methods.anchored import answer as anchored_answer
from transduce.methods.anchored.batch import AnchoredBatch
from transduce.methods.anchored.scores import ChunkScores, StepTables
from transduce.methods.anchored.steps import AnchoredState
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.simplex.probabilities import softmax
from transduce.task import Prediction, Task

Replaced = tuple[Any, str, Any]
Change = Callable[[], list[Replaced]]
MOST_WEIGHT = 40.0
FULL_COUNT = 10.0  # images; a class of more is hardly likelier than one of these
DOUBT = 3.0  # scores; a class is present if an image would be in it with that much less
PRESENCE_STEPS = 20
TEXT_BIAS = 0.5  # of the difference between what the text counts and what all evidence counts


@contextmanager
def changed(change: Change | None) -> Iterator[None]:
    """Replace parts of the method inside."""
    parts = [] if change is None else change()
    kept = [(owner, name, owner.__dict__[name]) for owner, name, _ in parts]
    for owner, name, other in parts:
        setattr(owner, name, other)
    try:
        yield
    finally:
        for owner, name, before in kept:
            setattr(owner, name, before)


def nobody_left_out() -> list[Replaced]:
    """Images are among what describes a class to them."""

    def nothing(self: object, classes: np.ndarray, z: np.ndarray, *others: object) -> np.ndarray:
        return np.zeros(len(z), np.float32)

    return [(CollapsedGaussians, "left_out", nothing), (PresencePrior, "left_out", nothing)]


def soft_counts() -> list[Replaced]:
    """The concentration from expected counts, as if every class with a share were present."""
    fitted = PresencePrior.refitted

    def refitted(
        self: PresencePrior, mass: np.ndarray, present: np.ndarray, total: float
    ) -> PresencePrior:
        return fitted(self, mass, np.ones_like(present), total)

    return [(PresencePrior, "refitted", refitted)]


def unguarded() -> list[Replaced]:
    """Image evidence counts as 16 dimensions, whatever agrees with it."""
    return [(AnchoredState, "_trusted_dimensions", lambda state: state.method.dimensions)]


def not_tempered() -> list[Replaced]:
    """Probabilities are a softmax of the scores, votes left out."""
    return [(anchored_answer, "_power", lambda scores, confidence: 1.0)]


def agreement_in_every_step() -> list[Replaced]:
    """How far images are trusted is measured again in every step, rather than once."""
    fit = AnchoredState.with_classes

    def with_classes(self: AnchoredState) -> AnchoredState:
        return fit(self).with_agreement()

    return [(AnchoredState, "with_classes", with_classes)]


def calibrated_images() -> list[Replaced]:
    """Image evidence has the weight at which its confidence is its agreement with the text."""
    measure = AnchoredState.with_agreement
    fitted: dict[int, float] = {}

    def with_agreement(self: AnchoredState) -> AnchoredState:
        state = measure(self)
        batch = state.batch
        step = replace(state, image_weight=1.0).step()
        scores = ChunkScores(batch, step, slice(0, batch.n_queries), apart=True)
        parts = scores.over_blocks(lambda rows: scores.parts(rows)[1:])
        counts, image = (np.concatenate(part) for part in zip(*parts, strict=True))
        low, high = 0.5, MOST_WEIGHT
        for _ in range(12):
            weight = (low * high) ** 0.5
            sure = float(softmax(counts + np.float32(weight) * image).max(1).mean())
            low, high = (low, weight) if sure > state.agreement else (weight, high)
        fitted[id(batch)] = weight
        return state

    def trusted(self: AnchoredState) -> float:
        return fitted[id(self.batch)]

    return [
        (AnchoredState, "with_agreement", with_agreement),
        (AnchoredState, "_trusted_dimensions", trusted),
    ]


def votes_by_purity() -> list[Replaced]:
    """Votes weigh by the square of the share of them that agree with the image's own answer."""
    limited = AnchoredState.voters

    def voters(self: AnchoredState) -> float:
        votes = self.batch.votes
        if votes is None or not votes.nnz:
            return limited(self)
        z = self.assignments.z.whole()
        known = self.batch.known
        every = sp.vstack([z, known], format="csr") if known.shape[0] else z
        agreeing = float((votes @ every).multiply(z).sum() / max(votes.sum(), 1e-9))
        return limited(self) * agreeing**2

    return [(AnchoredState, "voters", voters)]


def votes_by_own_class() -> list[Replaced]:
    """No more votes than an image's own class has others, rather than a class in the mean."""

    def voters(self: AnchoredState) -> float:
        found = self.assignments
        pairs = (
            found.mass @ (found.mass + self.moments.shot_mass) - (found.z.whole().data ** 2).sum()
        )
        return min(1.0, float(pairs) / self.batch.n_queries / self.method.neighbors)

    return [(AnchoredState, "voters", voters)]


def shared_neighbors() -> list[Replaced]:
    """A vote weighs by how many neighbors two images share, up to three of them."""
    first = AnchoredState.__dict__["first"].__func__

    def started(
        cls: type[AnchoredState], method: Anchored, batch: AnchoredBatch, *others: object
    ) -> AnchoredState:
        votes = batch.votes
        if votes is not None and votes.shape[0] == votes.shape[1] and votes.nnz:
            ones = np.ones_like(votes.data)
            links = sp.csr_array((ones, votes.indices, votes.indptr), shape=votes.shape)
            shared = sp.csr_array((links @ links.T).multiply(links))
            shared.data = np.minimum(shared.data + 1.0, method.neighbors) / method.neighbors
            batch = replace(batch, votes=sp.csr_array(votes.multiply(shared)).astype(np.float32))
        return first(cls, method, batch, *others)

    return [(AnchoredState, "first", classmethod(started))]


def votes_by_contrast() -> list[Replaced]:
    """A vote weighs by how far two images are more alike than images of the batch in the mean."""
    first = AnchoredState.__dict__["first"].__func__

    def started(
        cls: type[AnchoredState], method: Anchored, batch: AnchoredBatch, *others: object
    ) -> AnchoredState:
        votes, n = batch.votes, batch.n_queries
        if votes is not None and votes.shape == (n, n) and votes.nnz:
            rows = batch.in_features.rows.compared(np.arange(n))
            usual = (float(np.square(rows.sum(0)).sum()) - n) / (n * (n - 1))
            links = votes.tocoo()
            alike = np.einsum("ij,ij->i", rows[links.coords[0]], rows[links.coords[1]])
            share = np.maximum(alike - usual, 0.0) / np.maximum(alike, 1e-9)
            share /= max(float(np.average(alike, weights=links.data)) - usual, 1e-6)
            weighed = (votes.data * share).astype(np.float32)
            same = sp.csr_array((weighed, votes.indices, votes.indptr), shape=votes.shape)
            batch = replace(batch, votes=same)
        return first(cls, method, batch, *others)

    return [(AnchoredState, "first", classmethod(started))]


def guard_by_other_images() -> list[Replaced]:
    """Image evidence counts more where a class has few images to be described by.

    Images agree less with the text there, but their densities allow for that already.
    """
    measured = AnchoredState._trusted_dimensions

    def trusted(self: AnchoredState) -> float:
        here = max(float(self.assignments.present.sum()), 1.0)
        others = max(self.batch.n_queries / here - 1.0, 0.5)
        more = (1.0 - self.prior.weight) * 0.5 / others
        return measured(self) * (1.0 + more)

    return [(AnchoredState, "_trusted_dimensions", trusted)]


@dataclass(frozen=True)
class _BiasedPrior(PresencePrior):
    """Counts, less the text's own bias between classes."""

    bias: Float64[np.ndarray, " class"] | None = None

    def without_leaving_out(self) -> np.ndarray:
        counts = super().without_leaving_out()
        return counts if self.bias is None else counts - self.bias.astype(np.float32)


def text_bias() -> list[Replaced]:
    """The text's bias between classes: half the log ratio of its counts to those of everything."""
    fitted = AnchoredState.with_prior
    alone: dict[int, np.ndarray] = {}

    def with_prior(self: AnchoredState) -> AnchoredState:
        mass = self.assignments.mass
        text = alone.setdefault(id(self.batch), mass)  # the first assignments are the text's
        prior = fitted(self).prior
        bias = TEXT_BIAS * np.log((text + 1.0) / (mass + 1.0))
        biased = _BiasedPrior(prior.bias_variance, prior.concentration, mass, bias=bias)
        return replace(self, prior=biased)

    return [(AnchoredState, "with_prior", with_prior)]


def saturating_counts() -> list[Replaced]:
    """Counts up to ten images: that a class is here counts, hardly how many images it has."""

    def smoothed(self: PresencePrior, counts: np.ndarray) -> np.ndarray:
        bounded = counts * np.float32(FULL_COUNT) / (counts + np.float32(FULL_COUNT))
        return bounded + np.float32(self.concentration)

    return [(PresencePrior, "_smoothed", smoothed)]


def votes_of_full_sets() -> list[Replaced]:
    """Votes where all classes are present as well, in TransCLIP's weight of 1."""
    told = AnchoredState.step

    def step(self: AnchoredState) -> StepTables:
        tables = told(self)
        more = (1.0 - self.prior.weight) * self.voters()
        return replace(tables, vote_weight=tables.vote_weight + more)

    return [(AnchoredState, "step", step)]


def votes_by_text_nearby() -> list[Replaced]:
    """Votes by the eighth power of how often the text calls neighbors alike.

    The mean product of the text's answers of two neighbors over that of an image with itself,
    over what the sizes of the classes allow: it estimates how many neighbors share a class to
    0.05. Measured once, before images say anything.
    """
    limited = AnchoredState.voters
    known: dict[int, float] = {}

    def voters(self: AnchoredState) -> float:
        votes = self.batch.votes
        if votes is None or not votes.nnz or self.classes is None:
            return limited(self)
        if id(votes) not in known:
            n = self.batch.n_queries
            z, near = self.assignments.z.whole(), sp.csr_array(votes[:, :n])
            alike = float((near @ z).multiply(z).sum()) / max(float(near.sum()), 1e-9)
            others = np.maximum(self.assignments.mass[z.indices] - z.data, 0.0)
            most = float((z.data * np.minimum(1.0, others / self.method.neighbors)).sum()) / n
            share = alike / max(float((z.data**2).sum()) / n * most, 1e-9)
            known[id(votes)] = min(1.0, share) ** 8
        return limited(self) * known[id(votes)]

    return [(AnchoredState, "voters", voters)]


@dataclass(frozen=True)
class _PresentPrior(PresencePrior):
    """Counts, with pseudo-images for the classes that are present: log(n_k + gamma r_k)."""

    gamma: float = 1.0
    empty: float = 1.0  # the probability that a class without images is present
    absence: Float64[np.ndarray, " class"] | None = None  # sum of log(1 - z), z doubted

    def without_leaving_out(self) -> np.ndarray:
        assert self.absence is not None
        return self._weighed(self.mass, self.absence)

    def left_out(self, classes: np.ndarray, z: np.ndarray) -> np.ndarray:
        assert self.absence is not None
        mass, absence = self.mass[classes], self.absence[classes]
        others = np.maximum(mass - z, 0.0), np.minimum(absence - _log_absent(z), 0.0)
        return self._weighed(*others) - self._weighed(mass, absence)

    def _weighed(self, mass: np.ndarray, absence: np.ndarray) -> np.ndarray:
        present = 1.0 - np.exp(absence) * (1.0 - self.empty)
        return (self.weight * np.log(mass + self.gamma * present + 1e-9)).astype(np.float32)


def _log_absent(z: np.ndarray) -> np.ndarray:
    share = np.minimum(z, 0.9999).astype(np.float64)
    doubted = share * np.exp(-DOUBT) / (1.0 - share + share * np.exp(-DOUBT))
    return np.log1p(-doubted)


def presence_apart() -> list[Replaced]:
    """Which classes are here, and how many images each of these has, as two questions.

    A class is here with some probability, and the proportions of those that are have a Dirichlet
    distribution of their own, so that one class of two that look alike need not take all images.
    """
    fitted = AnchoredState.with_prior
    last: dict[int, float] = {}

    def with_prior(self: AnchoredState) -> AnchoredState:
        prior, z = fitted(self).prior, self.assignments.z.whole()
        absence = np.bincount(z.indices, _log_absent(z.data), minlength=len(prior.mass))
        total = float(self.batch.n_queries)
        gamma, empty = _fit_presence(
            prior.mass, -np.expm1(absence), total, last.get(id(self.batch.votes), 1.0)
        )
        last[id(self.batch.votes)] = gamma
        found = _PresentPrior(
            prior.bias_variance, prior.concentration, prior.mass, gamma, empty, absence
        )
        return replace(self, prior=found)

    return [(AnchoredState, "with_prior", with_prior)]


def _fit_presence(
    mass: np.ndarray, present: np.ndarray, total: float, gamma: float
) -> tuple[float, float]:
    """The concentration among the classes present, and the presence of one without images."""
    n_classes, here, empty = len(mass), max(float(present.sum()), 1.0 + 1e-6), 1.0
    given = np.where(present > 1e-9, mass / np.maximum(present, 1e-9), 1.0)
    for _ in range(PRESENCE_STEPS):
        if here < n_classes:
            rest = (here - 1.0) * gamma
            unseen = gammaln(rest + total) - gammaln(rest + gamma + total)
            unseen += gammaln(rest + gamma) - gammaln(max(rest, 1e-9))
            odds = here / (n_classes - here) * float(np.exp(min(unseen, 0.0)))
            empty = odds / (1.0 + odds)
        here = max(float((present + (1.0 - present) * empty).sum()), 1.0 + 1e-6)
        gained = (present * (digamma(given + gamma) - digamma(gamma))).sum()
        lost = here * (digamma(total + here * gamma) - digamma(here * gamma)) + 1e-12
        gamma = float(np.clip(gamma * gained / lost, 1e-4, 20.0))
    return gamma, empty


@dataclass(frozen=True)
class Averaged:
    """The mean of the probabilities under other numbers of neighbors and dimensions."""

    def predict(self, task: Task) -> Prediction:
        """Label with three settings and average."""
        answers = [
            Anchored(neighbors=neighbors, dimensions=dimensions).predict(task)
            for neighbors, dimensions in ((2, 12.0), (3, 16.0), (5, 20.0))
        ]
        mean = np.mean([answer.probabilities for answer in answers], axis=0)
        return replace(answers[1], probabilities=mean)
