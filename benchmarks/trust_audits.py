"""A thousand audits of each set: how often claims fail, and how much they say."""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import betaincinv

from benchmarks.record import Row
from benchmarks.trust_sets import Batch
from transduce.labeling.evaluation import wilson
from transduce.labeling.trust import risk
from transduce.labeling.trust.class_sets import SetMethod, class_scores, conformal_threshold

AUDITS = 1000
ERROR, CONFIDENCE, COVERAGE = 0.05, 0.95, 0.9

Draws = Int[np.ndarray, "audit drawn"]
Numbers = Float[np.ndarray, " image"]


def measure(batch: Batch, size: int, seed: int) -> Row:
    """All figures of audits of `size` images; the same draws for every order."""
    random = np.random.default_rng([seed, size])
    n = len(batch.label)
    draws = np.stack([random.choice(n, size, replace=False) for _ in range(AUDITS)])
    likely = 1.0 - batch.probabilities.max(1).astype(np.float64)
    row: Row = {"images": n, "wrong": int(batch.wrong.sum())}
    for name, doubt in {"doubt": batch.doubt.astype(np.float64), "max_probability": likely}.items():
        row[name] = _certified(doubt, batch.wrong, draws)
    row["interval"] = _intervals(batch, draws)
    row["sets"] = {method: _sets(batch, draws, method) for method in ("lac", "aps")}
    return row


def _certified(doubt: Numbers, wrong: Bool[np.ndarray, " image"], draws: Draws) -> Row:
    """Certificates from each audit, by the tests and the sequence of the library."""
    order = np.argsort(doubt, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    level = risk.level_of(1, CONFIDENCE)
    sizes = risk.prefix_sizes(len(order))
    expected = np.cumsum(doubt[order])[sizes - 1]
    first = risk.first_prefix(sizes, expected, draws.shape[1], ERROR, level)
    inside = place[draws][:, np.newaxis, :] < sizes[:, np.newaxis]  # audit, prefix, drawn
    counted = inside.sum(-1)
    found = (inside & wrong[draws][:, np.newaxis, :]).sum(-1)
    passed = np.empty(counted.shape, bool)
    for at, prefix in enumerate(sizes):  # few pairs of counts differ
        pairs, which = np.unique(
            np.stack([counted[:, at], found[:, at]]), axis=1, return_inverse=True
        )
        alike = np.full(pairs.shape[1], prefix)
        p = risk.prefix_p_values(alike, pairs[0], pairs[1], ERROR)
        passed[:, at] = (p <= level)[which]
    run = np.cumprod(passed[:, first:], axis=1).sum(1)
    certified = np.where(run > 0, sizes[np.minimum(first + run - 1, len(sizes) - 1)], 0)
    wrong_inside = np.concatenate([[0], np.cumsum(wrong[order])])[certified]
    broken = wrong_inside > ERROR * certified + 1e-9
    return {
        "share": round(float(certified.mean() / len(order)), 4),
        "none": round(float((certified == 0).mean()), 4),
        "broken": round(float(broken.mean()), 4),
    }


def _intervals(batch: Batch, draws: Draws) -> Row:
    """Coverage and mean width of intervals for the share of wrong labels."""
    doubt, wrong, size = batch.doubt.astype(np.float64), batch.wrong, draws.shape[1]
    true = float(wrong.mean())
    found = wrong[draws].sum(1)
    counts = np.arange(int(found.max()) + 1)
    tail = 0.5 * (1.0 - CONFIDENCE)
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), size - counts + 1, tail), 0.0)
    exact = np.stack([low, betaincinv(counts + 1, size - counts, 1.0 - tail)], 1)
    bounds = {
        "doubt": np.array([risk.score_interval(doubt, d, wrong[d], CONFIDENCE) for d in draws]),
        "clopper_pearson": exact[found],
        "wilson": np.array([wilson(int(count), size) for count in counts])[found],
    }
    return {
        name: {
            "coverage": round(float(((b[:, 0] <= true) & (true <= b[:, 1])).mean()), 4),
            "width": round(float((b[:, 1] - b[:, 0]).mean()), 5),
        }
        for name, b in bounds.items()
    }


def _sets(batch: Batch, draws: Draws, method: SetMethod) -> Row:
    """How often sets hold the truth of images that were not audited, and their mean size."""
    part = np.random.default_rng(0).random(len(batch.truth))
    scores = class_scores(batch.probabilities, method, part)
    rows = np.arange(len(batch.truth))
    truths, first = scores[rows, batch.truth], scores[rows, batch.probabilities.argmax(1)]
    members, firsts = np.sort(scores, axis=None), np.sort(first)
    held, mean_size = [], []
    for drawn in draws:
        threshold = conformal_threshold(truths[drawn], COVERAGE)
        covered = (truths <= threshold) | ~batch.wrong  # the label itself is always in its set
        rest = np.ones(len(rows), bool)
        rest[drawn] = False
        held.append(covered[rest].mean())
        empty = len(rows) - np.searchsorted(firsts, threshold, "right")
        mean_size.append((np.searchsorted(members, threshold, "right") + empty) / len(rows))
    return {"coverage": round(float(np.mean(held)), 4), "size": round(float(np.mean(mean_size)), 2)}
