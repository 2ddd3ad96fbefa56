"""Doubt, audits and certificates on real features: results/trust.md.

`python -m benchmarks.trust [--fresh]`; the folder of the features is named by TRANSDUCE_REFERENCE.
"""

import argparse
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks import trust_audits, trust_drawn, trust_orders, trust_unknown
from benchmarks.record import RESULTS, Record
from benchmarks.trust_sets import BATCHES, SETS, Batch, batches, features_of
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.provenance import machine, versions

COMMAND = "python -m benchmarks.trust"
SIZES = (100, 200, 400)
RIVALS = [name for name in trust_orders.ORDERS if name != "doubt"]
NOTE = (
    "Labels by `anchored`, doubts by `labeling/trust/doubt.py`, without any label; seed 0. The "
    "weights of the doubts were chosen on other batches of these sets; trust_weights.md "
    "judges weights on sets that they were not chosen on."
)

Any_ = dict[str, Any]


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the tables and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true")
    record = Record("trust", COMMAND, NOTE, fresh=parser.parse_args(arguments).fresh)
    orders, audits, unknown = [], [], []
    for name in SETS:
        features = features_of(name)
        for regime in BATCHES:
            key = {"set": name, "regime": regime}
            drawn = batches(features, regime)
            orders.append(record.add(key, partial(trust_orders.measure, drawn)))
        whole = partial(_whole, features)
        audits += [
            record.add({"set": name, "audited": size}, partial(_audited, whole, size))
            for size in SIZES
        ]
        removed = {"set": name, "removed": trust_unknown.REMOVED}
        unknown.append(record.add(removed, partial(trust_unknown.measure, features)))
        print(name, flush=True)
    drawn_world = record.add({"drawn": trust_drawn.DRAWS}, trust_drawn.measure)
    clip = record.add({"caution": "whole"}, trust_drawn.caution)
    text = _page(orders, audits, unknown, {**drawn_world, **clip})
    (RESULTS / "trust.md").write_text(text)
    _plot(audits)
    print(text)


def _audited(whole: Callable[[], Batch], size: int) -> Any_:
    return trust_audits.measure(whole(), size, seed=0)


@cache
def _whole(features: LabeledFeatures) -> Batch:
    return next(batches(features, "whole"))


def _page(orders: list[Any_], audits: list[Any_], unknown: list[Any_], drawn: Any_) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())
    return "\n\n".join(
        [
            "# Trust: doubt, audits, certificates",
            NOTE,
            "## Errors found first",
            _summary(orders),
            _table(_order_columns(), orders),
            "## What the doubts expect",
            "Wrong labels, as the doubts expect / as they are: of all labels, of those that look "
            "right, and of those to check (a doubt of 0.1 or more), and what part of the images "
            "these are; the expected calibration error (ten bins); and in how many of the batches "
            "at most as many labels that look right were wrong as the program says there may be "
            "(`most_wrong`, meant to hold in 19 of 20).",
            _reading(orders),
            _table(_calibration_columns(), orders),
            _drawn_world(drawn["draws"], drawn["zero_shot"]),
            "## A thousand audits of each set",
            f"Error at most {trust_audits.ERROR:.0%}, confidence {trust_audits.CONFIDENCE:.0%}. "
            f"*Broken*: audits whose certified labels have more errors than that (at most 5 % are "
            f"permitted; Monte Carlo error of a true 5 %: {100 * np.sqrt(0.0475 / 1000):.1f}). "
            "*Certified*: mean share of the labels, by the order of doubt and by max probability.",
            _table(_certificate_columns(), audits),
            "Intervals of the accuracy: how often they hold it, and their mean width in points.",
            _table(_interval_columns(), audits),
            f"Sets of classes at {trust_audits.COVERAGE:.0%}: how often they hold the truth of "
            "images that were not audited, and how many classes they have on average.",
            _table(_set_columns(), audits),
            "## None of these",
            f"One of {trust_unknown.REMOVED} classes, at random, is taken off the list, "
            f"{trust_unknown.REPEATS} times: how well each measure ranks the images of these "
            "classes (AUROC, %).",
            _table(_unknown_columns(), unknown),
            "![Share certified and width of the interval](trust.svg)",
            f"Made by `{COMMAND}` on {facts}.\n",
        ]
    )


def _table(columns: Any_, rows: list[Any_]) -> str:
    cells = [list(columns)] + [[show(row) for show in columns.values()] for row in rows]
    lines = ["| " + " | ".join(line) + " |" for line in cells]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def _three(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def _best(row: Any_) -> list[float]:
    return np.max([row["found"][name] for name in RIVALS], axis=0).tolist()


def _order_columns() -> Any_:
    shown = ["doubt", "max probability", "margin", "entropy"]
    return {
        "set": lambda row: row["set"],
        "regime": lambda row: row["regime"],
        "wrong": lambda row: f"{row['wrong']:,} of {row['images']:,}",
        **{name: (lambda row, name=name: _three(row["found"][name])) for name in shown},
        "best of the nine others": lambda row: _three(_best(row)),
    }


def _summary(orders: list[Any_]) -> str:
    every = list(trust_orders.ORDERS)
    means = {name: np.mean([row["found"][name] for row in orders], axis=0) for name in every}
    gaps = np.array([np.subtract(row["found"]["doubt"], _best(row)) for row in orders])
    gain = means["doubt"] - means["margin"]
    one_image = np.array([[100 / max(1, row["wrong"])] * 3 for row in orders])
    rows = [{"order": name, "found": _three(means[name].tolist())} for name in every]
    columns = {"order": lambda row: row["order"], "5 / 10 / 20 %": lambda row: row["found"]}
    lines = [
        "Share of all wrong labels (%) in the first 5 / 10 / 20 % of the queue, mean over the "
        f"{len(orders)} cells (nine sets, four regimes):",
        _table(columns, rows),
        f"`doubt` is the best or within a point of the best of the nine others in "
        f"{(gaps >= -1.0).sum()} of {gaps.size} cells, and within a point or one image in "
        f"{(gaps >= -np.maximum(1.0, one_image) - 0.01).sum()}. Its largest shortfall is "
        f"{-gaps.min():.1f} points, its mean lead over the best of them in each cell "
        f"{gaps.mean():+.1f} points, over margin {_three(gain.tolist())}.",
        _shortfalls(orders),
        "cleanlab's scores (`get_label_quality_scores`, 2.9.0) are its three published formulas, "
        "of the joint method's probabilities and of zero-shot's; of the former, self-confidence "
        "is max probability and normalized margin is margin.",
    ]
    return "\n\n".join(lines)


def _shortfalls(orders: list[Any_]) -> str:
    """The cells where another order is more than a point better."""
    rows = []
    for row in orders:
        for at, part in enumerate(trust_orders.PARTS):
            best = max(RIVALS, key=lambda name: row["found"][name][at])
            gap = row["found"]["doubt"][at] - row["found"][best][at]
            if gap < -1.0:
                error = row["standard_error"][best][at]
                rows.append({**row, "part": part, "best": best, "gap": gap, "error": error})
    columns: Any_ = {
        "set": lambda row: row["set"],
        "regime": lambda row: row["regime"],
        "wrong": lambda row: f"{row['wrong']:,}",
        "first": lambda row: f"{row['part']:.0%}",
        "best": lambda row: row["best"],
        "shortfall": lambda row: f"{row['gap']:.1f} ± {row['error']:.1f}",
    }
    if not rows:
        return "No cell is short by more than a point."
    return (
        "The cells that are short by more than a point, with the standard error of the difference "
        "(from the errors that one of the two orders finds early and the other does not):\n\n"
        + _table(columns, rows)
    )


def _parts(row: Any_) -> dict[str, tuple[float, int]]:
    """Expected and found wrong labels, of all and of the two parts."""
    every = row["expected_wrong"], row["wrong"]
    check = row["to_check_expected"], row["to_check_wrong"]
    right = every[0] - check[0], every[1] - check[1]
    return {"all": every, "look right": right, "to check": check}


def _reading(orders: list[Any_]) -> str:
    """What the table says of the numbers that a user is told."""
    texts = []
    for name in ("all", "look right", "to check"):
        ratios = np.array([(part[0] + 1) / (part[1] + 1) for part in _each(orders, name)])
        off = np.maximum(ratios, 1 / ratios)
        texts.append(
            f"{name}: {np.exp(np.log(ratios).mean()):.2f} (typically off by a factor of "
            f"{np.exp(np.sqrt((np.log(ratios) ** 2).mean())):.1f}, at most {off.max():.1f}; "
            f"{(off <= 2).sum()} of {len(off)} cells within a factor of 2)"
        )
    shares = [row["within"] / row["batches"] for row in orders]
    low = min(orders, key=lambda row: row["within"] / row["batches"])
    return (
        "Expected to found, geometric mean over the cells, one label added to each: "
        + "; ".join(texts)
        + f". What there may be at most held in {np.mean(shares):.1%} of the batches, mean over "
        f"the cells; least often in {low['set']}, {low['regime']}: {low['within']} of "
        f"{low['batches']}. So the expected number is an estimate, right on average and not for "
        "each batch; the audit measures it."
    )


def _drawn_world(draws: list[Any_], zero_shot: Any_) -> str:
    means = {name: np.mean([row[name] for row in draws]) for name in draws[0]}
    within = sum(row["found"] <= row["most"] for row in draws)
    by_wrong = sorted(range(len(draws)), key=lambda seed: draws[seed]["wrong"])
    median = by_wrong[len(draws) // 2]
    shown = draws[median]
    caution = [expected / wrong for expected, wrong in zero_shot.values()]
    return (
        "`transduce demo` has an encoder of its own, of a drawn world. It is less cautious than "
        "CLIP, which by its own scale, softmax(100 cos), expects "
        f"{np.exp(np.log(caution).mean()):.1f} errors for each that it makes (geometric mean over "
        f"the nine sets), and so its doubts are too small. Seeds 0 to {len(draws) - 1} of "
        f"the demo: of {means['look_right']:.0f} labels that look right {means['expected']:.1f} "
        f"are expected to be wrong and {means['found']:.1f} are, means; of those to check "
        f"{means['to_check_expected']:.1f} and {means['to_check_found']:.1f}. At most as many as "
        f"said are wrong in {within} of {len(draws)}. The demo shows the median of them by wrong "
        f"labels, seed {median}: about {shown['expected']:.0f} expected, at most "
        f"{shown['most']}, and {shown['found']} are wrong; the worst has "
        f"{max(row['found'] for row in draws)} wrong ones that look right."
    )


def _each(orders: list[Any_], name: str) -> list[tuple[float, int]]:
    return [_parts(row)[name] for row in orders]


def _calibration_columns() -> Any_:
    def shown(name: str) -> Any:  # noqa: ANN401 - a column
        return lambda row: "{:,.0f} / {:,}".format(*_parts(row)[name])

    return {
        "set": lambda row: row["set"],
        "regime": lambda row: row["regime"],
        **{name: shown(name) for name in ("all", "look right", "to check")},
        "part to check": lambda row: f"{row['to_check'] / row['images']:.0%}",
        "holds of the errors": lambda row: f"{row['to_check_wrong'] / max(1, row['wrong']):.0%}",
        "calibration error (%)": lambda row: f"{row['calibration_error']:.1f}",
        "at most as said": lambda row: f"{row['within']} of {row['batches']}",
    }


def _certificate_columns() -> Any_:
    return {
        "set": lambda row: row["set"],
        "accuracy": lambda row: f"{1 - row['wrong'] / row['images']:.1%}",
        "audited": lambda row: f"{row['audited']}",
        "certified": lambda row: f"{row['doubt']['share']:.1%}",
        "by max probability": lambda row: f"{row['max_probability']['share']:.1%}",
        "nothing certified": lambda row: f"{row['doubt']['none']:.1%}",
        "broken": lambda row: f"{row['doubt']['broken']:.1%}",
        "broken, max probability": lambda row: f"{row['max_probability']['broken']:.1%}",
    }


def _interval_columns() -> Any_:
    def shown(name: str) -> Any:  # noqa: ANN401 - a column
        return lambda row: (
            f"{row['interval'][name]['coverage']:.1%}, {100 * row['interval'][name]['width']:.2f}"
        )

    return {
        "set": lambda row: row["set"],
        "audited": lambda row: f"{row['audited']}",
        "with the doubts": shown("doubt"),
        "Clopper-Pearson": shown("clopper_pearson"),
        "Wilson": shown("wilson"),
        "width to Clopper-Pearson": lambda row: (
            f"{row['interval']['doubt']['width'] / row['interval']['clopper_pearson']['width']:.2f}"
        ),
    }


def _set_columns() -> Any_:
    def shown(name: str) -> Any:  # noqa: ANN401 - a column
        return lambda row: (
            f"{row['sets'][name]['coverage']:.1%}, {row['sets'][name]['size']:.2f} classes"
        )

    return {
        "set": lambda row: row["set"],
        "audited": lambda row: f"{row['audited']}",
        "LAC": shown("lac"),
        "APS": shown("aps"),
    }


def _unknown_columns() -> Any_:
    return {
        "set": lambda row: row["set"],
        **{name: (lambda row, name=name: f"{row[name]:.1f}") for name in trust_unknown.MEASURES},
        "gain": lambda row: f"{row['distance and entropy'] - row['distance']:+.1f}",
    }


def _plot(audits: list[Any_]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "transduce", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    names = list(SETS)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), sharey=True)
    shades = dict(zip(SIZES, ("#9ecae1", "#4292c6", "#084594"), strict=True))
    for row in audits:
        y = -names.index(row["set"]) + 0.25 * (1 - SIZES.index(row["audited"]))
        color = shades[row["audited"]]
        ours, theirs = row["doubt"]["share"], row["max_probability"]["share"]
        left.plot([theirs, ours], [y, y], color=color, linewidth=1)
        left.plot(theirs, y, "|", color=color, markersize=9)
        left.plot(ours, y, "o", color=color, markersize=5)
        widths = row["interval"]
        ratio = widths["doubt"]["width"] / widths["clopper_pearson"]["width"]
        right.plot(ratio, y, "o", color=color, markersize=5)
    left.set_yticks([-at for at in range(len(names))], names)
    left.set_xlabel("share certified: dots by doubt, bars by max probability")
    right.set_xlabel("width of the interval / Clopper-Pearson's")
    left.set_xlim(-0.02, 1.02)
    right.axvline(1.0, color="#888888", linewidth=0.8)
    handles = [
        plt.Line2D([], [], marker="o", linestyle="", color=shades[size], label=f"{size} audited")
        for size in SIZES
    ]
    right.legend(handles=handles, frameon=False, loc="lower left")
    for axes in (left, right):
        axes.grid(axis="x", linewidth=0.4)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(RESULTS / "trust.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
