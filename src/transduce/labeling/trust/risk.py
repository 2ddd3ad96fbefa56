"""What a random sample says of all labels: exact tests, a fixed sequence of them, an interval.

The population is finite and the sample drawn from it without replacement, so the number of wrong
labels in the sample is hypergeometric: nothing here is an approximation but `score_interval`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from scipy.special import betaincinv, gammaln, ndtri

from transduce.labeling.trust.doubt import LEAST, MOST, logistic, shifted

FIRST_LOOK = 0.8  # of the permitted error probability; later draws halve what is left
STEPS = 50  # prefixes of the order of trust that may be certified
SHIFTS = 30  # bisections
FLATTENED = 0.7  # logits of doubts, in the interval
WIDEST = 30.0  # shift of logits
REHEARSALS = 100
REHEARSED_LEAST = 0.002  # wrong labels, however trusted
REHEARSED_ODDS = (0.6, 1.0, 1.6, 2.5, 4.0)
DRAWS = (50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
WORTHWHILE = 0.05  # of the labels, certified in addition
LIKELY = 0.8

Counts = Int[np.ndarray, " prefix"]
Shares = Float64[np.ndarray, " image"]
PerPrefix = Float64[np.ndarray, " prefix"]
Ranks = Int[np.ndarray, " drawn"]
Flags = Bool[np.ndarray, " drawn"]


def level_of(number: int, confidence: float) -> float:
    """Return the error probability that the draw of this number may spend.

    The levels of all draws of a run add up to 1 - confidence, so that all certificates of a run
    hold together, however many draws somebody tries.
    """
    rest = (1.0 - FIRST_LOOK) * 0.5 ** (number - 1)
    return (1.0 - confidence) * (FIRST_LOOK if number == 1 else rest)


def hypergeometric_cdf(
    found: Int[np.ndarray, "*test"],
    total: Int[np.ndarray, "*test"],
    marked: Int[np.ndarray, "*test"],
    drawn: Int[np.ndarray, "*test"],
) -> Float64[np.ndarray, "*test"]:
    """Return P(X <= found), X the marked ones among `drawn` of `total` with `marked` marked."""
    found, total, marked, drawn = (
        np.asarray(values, np.float64) for values in (found, total, marked, drawn)
    )
    whole = _log_choose(total, drawn)
    sums = np.zeros(np.broadcast(found, total, marked, drawn).shape)
    for count in range(int(found.max(initial=-1.0)) + 1):
        possible = (count <= found) & (count <= marked) & (drawn - count <= total - marked)
        term = _log_choose(marked, count) + _log_choose(total - marked, drawn - count) - whole
        sums += np.where(possible & (count <= drawn), np.exp(np.where(possible, term, 0.0)), 0.0)
    return np.clip(sums, 0.0, 1.0)


def _log_choose(n: Float[np.ndarray, "..."], k: Float[np.ndarray, "..."] | float) -> np.ndarray:
    kept = np.clip(k, 0.0, np.maximum(n, 0.0))
    n = np.maximum(n, 0.0)
    return gammaln(n + 1.0) - gammaln(kept + 1.0) - gammaln(n - kept + 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditSample:
    """What is known of a population whose labels are in the order of trust.

    Parameters
    ----------
    drawn, wrong : arrays of shape (drawn,)
        The ranks of the images drawn at random, and whether their labels are wrong.
    known, known_wrong : arrays of shape (known,)
        The same of images that were known before, and that were not drawn from.
    """

    drawn: Ranks
    wrong: Flags
    known: Ranks = field(default_factory=lambda: np.zeros(0, np.int64))
    known_wrong: Flags = field(default_factory=lambda: np.zeros(0, bool))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixTest:
    """One test: whether the `size` most trusted labels have at most the permitted error."""

    size: int
    audited: int  # of these, images of the draw
    wrong: int  # of the audited, wrong labels
    p_value: float
    expected_wrong: float  # among all of them, by their doubts
    tested: bool  # whether the sequence came to it
    passed: bool


def prefix_sizes(population: int) -> Counts:
    """Return the sizes of the prefixes that may be certified, the largest being all."""
    steps = min(STEPS, population)
    return np.unique(np.ceil(np.arange(1, steps + 1) * population / steps).astype(np.int64))


def prefix_p_values(
    sizes: Counts, drawn: Counts, wrong: Counts, error: float,
    *, known: Counts | None = None, known_wrong: Counts | None = None,
) -> Float64[np.ndarray, " prefix"]:  # fmt: skip
    """Return for each prefix the p-value of "more than `error` of its labels are wrong".

    `drawn` and `wrong` count the sample's images in each prefix; `known` and `known_wrong` those
    whose truth was known before the sample was drawn.
    """
    nothing = np.zeros_like(sizes)
    known = nothing if known is None else known
    known_wrong = nothing if known_wrong is None else known_wrong
    # The fewest wrong labels that break the limit, among those not known beforehand.
    breaking = np.floor(error * sizes + 1e-9).astype(np.int64) + 1 - known_wrong
    left = sizes - known
    tested = hypergeometric_cdf(wrong, left, np.clip(breaking, 0, left), drawn)
    return np.where(breaking > left, 0.0, np.where(breaking <= 0, 1.0, tested))


def rehearsed(
    sizes: Counts, expected: PerPrefix, drawn: int, error: float, level: float,
    *, odds: Sequence[float] = REHEARSED_ODDS,
) -> Float64[np.ndarray, "rehearsal prefix"]:  # fmt: skip
    """Return how many labels a sequence from each prefix certified, in rehearsals of the audit.

    A rehearsal draws samples from a population that is wrong as the doubts say, or some times
    more or less often; it never sees an answer.

    Parameters
    ----------
    sizes, expected : arrays of shape (prefix,)
        The prefixes, and the number of wrong labels in each by its doubts.
    drawn : int
        Images of the sample.
    error, level : float
        What is permitted.
    odds : sequence of float
        How many times as often as by their doubts labels are wrong.
    """
    random = np.random.default_rng(0)
    layers = np.diff(sizes, prepend=0)
    rates = np.diff(expected, prepend=0.0) / layers
    shape = (len(odds), REHEARSALS)
    counts = random.multivariate_hypergeometric(layers, drawn, shape, method="marginals")
    chance = np.clip(np.multiply.outer(np.array(odds), rates) + REHEARSED_LEAST, 0.0, 1.0)
    wrong = random.binomial(counts, chance[:, np.newaxis])
    counts, wrong = (np.cumsum(part, -1).reshape(-1, len(sizes)) for part in (counts, wrong))
    hopeless = wrong > error * counts  # these need no p-value
    every = np.broadcast_to(sizes, counts.shape)
    p = prefix_p_values(every, counts, np.where(hopeless, 0, wrong), error)
    failed = hopeless | (p > level)
    end = np.full(len(failed), len(sizes))
    certified = np.zeros(failed.shape)
    for at in reversed(range(len(sizes))):
        end = np.where(failed[:, at], at, end)
        certified[:, at] = np.where(end > at, sizes[end - 1], 0)
    return certified


def first_prefix(sizes: Counts, expected: PerPrefix, drawn: int, error: float, level: float) -> int:
    """Return the index of the prefix to begin with: where rehearsals certified most.

    It depends on the doubts and the size of the sample alone, never on an answer.
    """
    return int(rehearsed(sizes, expected, drawn, error, level).mean(0).argmax())


def enough(
    doubt: Shares, share: float, certified: int, error: float, level: float, most: int
) -> int | None:
    """Return how many images a new draw needs to certify more, in four of five rehearsals.

    The doubts are shifted to the share of wrong labels that was found. None if `most` images
    would not do.
    """
    sizes = prefix_sizes(len(doubt))
    expected = np.cumsum(shifted(logits_of(doubt), share))[sizes - 1]
    for drawn in DRAWS:
        if drawn > most:
            break
        found = rehearsed(sizes, expected, drawn, error, level, odds=(1.0,))
        best = found[:, found.mean(0).argmax()]
        if (best > certified + WORTHWHILE * len(doubt)).mean() >= LIKELY:
            return drawn
    return None


def allowed_wrong(size: int, drawn: int, error: float, level: float) -> int:
    """Return the most wrong labels in the sample with which a prefix passes; -1 for none."""
    found = np.arange(min(drawn, math.floor(error * drawn)) + 1)  # more never pass
    alike = np.full_like(found, size)
    p = prefix_p_values(alike, np.full_like(found, drawn), found, error)
    return int((p <= level).sum()) - 1


def score_interval(
    doubt: Shares, drawn: Ranks, wrong: Flags, confidence: float
) -> tuple[float, float]:
    """Return an interval for the share of wrong labels in the population.

    Wilson's interval, with what the doubts of the drawn images make of the count: all doubts are
    shifted alike, and a shift is kept if the number of wrong labels in the sample is not surprising
    for it. `drawn` are the ranks of the sample in `doubt`.
    """
    population, size, found = len(doubt), len(drawn), int(wrong.sum())
    if size == population:
        return found / size, found / size
    z, left = float(ndtri(0.5 + 0.5 * confidence)), (population - size) / (population - 1)
    # The most trusted labels are wrong more often than they say.
    logits = FLATTENED * logits_of(doubt)
    sampled = logits[drawn]
    likeliest = _where(lambda shift: logistic(sampled + shift).sum() > max(found, 0.5))
    spread = _dispersion(logistic(sampled + likeliest), wrong)

    def surprise(shift: float) -> float:
        expected = logistic(sampled + shift)
        variance = spread * left * float((expected * (1.0 - expected)).sum())
        # Counts are whole: half a label is no surprise.
        return (abs(found - expected.sum()) - 0.5) / math.sqrt(max(variance, 1e-12))

    low = _where(lambda shift: shift > likeliest or surprise(shift) <= z)
    high = _where(lambda shift: shift > likeliest and surprise(shift) > z)
    shares = (float(logistic(logits + shift).mean()) for shift in (low, high))
    return max(next(shares), found / population), min(
        next(shares), 1.0 - (size - found) / population
    )


def logits_of(doubt: Shares) -> Shares:
    """Return log(doubt / (1 - doubt))."""
    clipped = np.clip(doubt, LEAST, MOST)
    return np.log(clipped / (1.0 - clipped))


def _dispersion(expected: Shares, wrong: Bool[np.ndarray, " drawn"]) -> float:
    """Return how much wider than the doubts say the sample is spread around them; at least 1."""
    variance = float((expected * (1.0 - expected)).sum())
    return max(1.0, float(((wrong - expected) ** 2).sum()) / max(variance, 1e-12))


def _where(above: Callable[[float], bool]) -> float:
    """Return the shift of logits at which `above` becomes true, by bisection."""
    low, high = -WIDEST, WIDEST
    for _ in range(SHIFTS):
        middle = 0.5 * (low + high)
        if above(middle):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def counting_interval(wrong: int, size: int, confidence: float) -> tuple[float, float]:
    """Return the interval of plain counting, for comparison (Clopper and Pearson, 1934)."""
    tail = 0.5 * (1.0 - confidence)
    low = float(betaincinv(wrong, size - wrong + 1, tail)) if wrong else 0.0
    high = float(betaincinv(wrong + 1, size - wrong, 1.0 - tail)) if wrong < size else 1.0
    return low, high


def prefix_tests(
    doubt: Shares, sample: AuditSample, error: float, level: float, first: int | None = None
) -> tuple[tuple[PrefixTest, ...], int]:
    """Test prefixes of the order of trust in a fixed sequence; also return where it began.

    Parameters
    ----------
    doubt : array of shape (image,)
        Of the population, the most trusted first.
    sample : AuditSample
        What is known of it.
    error, level : float
        The permitted share of wrong labels, and the permitted probability of a wrong claim.
    first : int, optional
        Where the sequence begins, as `first_prefix` returned it.
    """
    sizes, expected = prefix_sizes(len(doubt)), np.cumsum(doubt)
    inside = sample.drawn < sizes[:, np.newaxis]
    inside_known = sample.known < sizes[:, np.newaxis]
    counted, found = inside.sum(1), (inside & sample.wrong).sum(1)
    p_values = prefix_p_values(
        sizes, counted, found, error,
        known=inside_known.sum(1), known_wrong=(inside_known & sample.known_wrong).sum(1),
    )  # fmt: skip
    held = p_values <= level
    if len(sample.drawn) + len(sample.known) == len(doubt):
        # All are known and nothing is left to chance: every prefix may be looked at.
        first, end = 0, int(np.flatnonzero(held).max(initial=-1)) + 1
    else:
        if first is None:
            first = first_prefix(sizes, expected[sizes - 1], len(sample.drawn), error, level)
        failed = np.flatnonzero(~held[first:])
        end = first + int(failed[0]) if failed.size else len(sizes)
    return tuple(
        PrefixTest(
            size=int(size), audited=int(counted[at]), wrong=int(found[at]),
            p_value=float(p_values[at]), expected_wrong=float(expected[size - 1]),
            tested=first <= at <= end, passed=first <= at < end and bool(held[at]),
        )
        for at, size in enumerate(sizes)
    ), first  # fmt: skip


def wrong_share(
    doubt: Shares, sample: AuditSample, confidence: float
) -> tuple[float, tuple[float, float]]:
    """Return the estimated share of wrong labels in the population, and its interval.

    The estimate is the mean of the doubts, corrected by how far the sample is from its own.
    """
    free = np.ones(len(doubt), bool)
    free[sample.known] = False
    left, drawn, wrong = doubt[free], (np.cumsum(free) - 1)[sample.drawn], sample.wrong
    estimate = float(left.mean() + (wrong - left[drawn]).mean())
    bounds = score_interval(left, drawn, wrong, confidence)
    estimate = float(np.clip(estimate, *bounds))
    estimate, low, high = (
        float((share * len(left) + sample.known_wrong.sum()) / len(doubt))
        for share in (estimate, *bounds)
    )
    return estimate, (low, high)
