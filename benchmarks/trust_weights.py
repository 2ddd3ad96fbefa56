"""The weights of the doubts, chosen on all sets but those they are judged on.

`python -m benchmarks.trust_weights` writes results/trust_weights.md; the folder of the features is
named by TRANSDUCE_REFERENCE. A set counts with all others of its images or classes. The batches
are others than those of `benchmarks.trust`, but for whole sets, of which there is only one.
"""

import itertools
from collections.abc import Iterable
from dataclasses import astuple

import numpy as np
from jaxtyping import Float

from benchmarks.record import RESULTS
from benchmarks.trust_orders import ORDERS, PARTS, early
from benchmarks.trust_sets import BATCHES, SETS, Batch, batches, features_of, first_two
from transduce.benchmark.provenance import machine, versions
from transduce.labeling.trust.doubt import WEIGHTS, Weights, doubts

SEED, MOST = 1, 40  # batches of a cell
GRID = [
    Weights(neighbors=neighbors, names=names, group=group, misnamed=misnamed)
    for neighbors, names, group, misnamed in itertools.product(
        (6.0, 8.0, 10.0), (0.05, 0.1, 0.15), (1.0, 1.5, 2.0, 2.5, 3.0), (0.0, 0.4, 0.8)
    )
]
RIVALS = [name for name in ORDERS if name != "doubt"]

Gaps = Float[np.ndarray, "weights part"]  # points ahead of the best of the nine other orders


def main() -> None:
    """Measure all weights on all cells, choose on some sets, and judge on the others."""
    gaps = {
        (name, regime): _gaps(batches(features, regime, seed=SEED, most=MOST))
        for name in SETS
        for features in [features_of(name)]
        for regime in BATCHES
    }
    cells = np.array(list(gaps.values()))  # cell, weights, part
    family = np.array([name.split()[0].split("-")[0] for name, _ in gaps])
    lines, judged, own = [], [], GRID.index(WEIGHTS)
    for left_out in np.unique(family):
        out = family == left_out
        # What is ahead by more than a point is not missed elsewhere.
        chosen = int(np.minimum(cells[~out], 1.0).mean((0, 2)).argmax())
        judged.append(cells[out, chosen])
        lines.append(_line(str(left_out), GRID[chosen], cells[out, chosen], cells[out, own]))
    every = np.concatenate(judged)
    lines.append(_line("all", None, every, cells[:, own]))
    facts = ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())
    text = "\n".join(
        [
            "# The weights of the doubts, on sets that they were not chosen on",
            "",
            f"For each family of sets: the weights (of {len(GRID)}) that are best on the others, "
            "by the mean over the cells of the lead over the best of nine other orders, at most a "
            "point; and in how many of its cells (set, regime, 5 / 10 / 20 % of the queue) they "
            "are the best or within a point of it, beside the weights of the library, which were "
            "chosen on all.",
            "",
            "| left out | neighbors, names, group, misnamed | within a point | largest shortfall "
            "| mean lead | library: within a point | largest shortfall | mean lead |",
            "|" + "---|" * 8,
            *lines,
            "",
            f"Seed {SEED}, up to {MOST} batches of a set and regime. Made by "
            f"`python -m benchmarks.trust_weights` on {facts}.",
            "",
        ]
    )
    (RESULTS / "trust_weights.md").write_text(text)
    print(text)


def _gaps(drawn: Iterable[Batch]) -> Gaps:
    ours, theirs, total = np.zeros((len(GRID), len(PARTS))), np.zeros((len(RIVALS), len(PARTS))), 0
    for batch in drawn:
        top = first_two(batch.probabilities)
        known = batch.label, top, batch.evidence, batch.estimates
        ours += [_found(doubts(*known, weights), batch) for weights in GRID]
        theirs += [_found(ORDERS[name](batch), batch) for name in RIVALS]
        total += int(batch.wrong.sum())
    return 100 * (ours - theirs.max(0)) / max(1, total)


def _found(order: Float[np.ndarray, " image"], batch: Batch) -> Float[np.ndarray, " part"]:
    return (early(order) & batch.wrong).sum(1).astype(float)


def _line(name: str, weights: Weights | None, judged: Gaps, own: Gaps) -> str:
    def shown(gaps: Gaps) -> list[str]:
        within = f"{(gaps >= -1.0).sum()} of {gaps.size}"
        return [within, f"{max(0.0, -gaps.min()):.1f}", f"{gaps.mean():+.2f}"]

    chosen = ", ".join(f"{value:g}" for value in astuple(weights)) if weights else ""
    return "| " + " | ".join([name, chosen, *shown(judged), *shown(own)]) + " |"


if __name__ == "__main__":
    main()
