"""Settings chosen on validation tasks, before any test task is seen (section 5.2 of the paper).

Five tasks with the run's shots and 35 queries are drawn from the validation split, shots and
queries apart; every combination of the method's grid is tried, the defaults first, and the most
accurate one is taken, the earlier one among equals. Where the validation split has too few images
for the shots, these come from the split that the run takes its shots from; where there is no
validation split, so do the queries, other images than the shots.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from transduce.benchmark.evaluation import Chunk, Records, episode
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.metrics import mean_and_interval
from transduce.benchmark.run import Run, Setting, digest, settings_of
from transduce.errors import InvalidSetting
from transduce.methods import METHODS

TASKS, QUERIES = 5, 35
SPLIT = "val"

Evaluate = Callable[[Sequence[Chunk]], list[Records]]


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried, and their accuracy on the validation tasks."""

    settings: Mapping[str, Setting]
    accuracy: float


@dataclass(frozen=True)
class Tuning:
    """Settings chosen for a run, what else was tried, and on which images.

    `reason` says why nothing was tried; the settings chosen are the defaults then.
    """

    chosen: Mapping[str, Setting]
    candidates: tuple[Candidate, ...] = ()
    tasks: int = TASKS
    queries: int = QUERIES
    query_split: str = ""
    support_split: str = ""
    reason: str = ""


def tuning_key(run: Run) -> str:
    """Return the name of a run's tuning, which does not depend on its number of test tasks."""
    value = {**run.to_json(), "tasks": TASKS}
    return f"{run.method}--{digest(value)}"


def candidates(run: Run) -> list[dict[str, Setting]]:
    """Return combinations of the grid, defaults first; the run's own settings are not tuned."""
    fixed = dict(run.settings)
    grid = {name: values for name, values in METHODS[run.method].grid.items() if name not in fixed}
    defaults = settings_of(run.build())
    combinations: list[dict[str, Setting]] = [{name: defaults[name] for name in grid}]
    for values in product(*grid.values()):
        candidate: dict[str, Setting] = dict(zip(grid, values, strict=True))
        if candidate not in combinations:
            combinations.append(candidate)
    return combinations


def validation_run(run: Run, features: LabeledFeatures) -> Run:
    """Return the run on validation tasks; refuse, with the numbers, if images do not suffice."""
    protocol = run.protocol.with_at_most(QUERIES)
    wanted = replace(run, protocol=protocol, tasks=TASKS, tuned=False)
    refusal = InvalidSetting(f"Expected a {SPLIT} split of {features.name}, found none.")
    for queries, shots in _splits(run, features):
        tuned_on = replace(wanted, query_split=queries, support_split=shots)
        try:
            for index in range(TASKS):
                episode(features, tuned_on, index)
        except InvalidSetting as error:
            refusal = error
        else:
            return tuned_on
    raise refusal


def _splits(run: Run, features: LabeledFeatures) -> list[tuple[str, str]]:
    """Return splits for queries and shots, in the order to try; never the images to be tested."""
    training = run.support_split
    if training not in features.splits or training == run.query_split:
        training = SPLIT
    if SPLIT not in features.splits:  # ImageNet has none: apart from each other, both from training
        return [(training, training)] if training in features.splits else []
    return [(SPLIT, SPLIT)] if training == SPLIT else [(SPLIT, SPLIT), (SPLIT, training)]


def tune(run: Run, features: LabeledFeatures, evaluate: Evaluate) -> Tuning:
    """Return the best settings on validation tasks; without enough images, the defaults and why."""
    tried = candidates(run)
    try:
        on = validation_run(run, features)
    except InvalidSetting as error:
        return Tuning(tried[0], tasks=0, queries=0, reason=f"not tuned: {error}")
    chunks = [Chunk(on, run.build(**candidate), 0, TASKS) for candidate in tried]
    scores = [mean_and_interval(records.accuracies)[0] for records in evaluate(chunks)]
    best = max(range(len(tried)), key=lambda index: scores[index])
    pairs = zip(tried, scores, strict=True)
    return Tuning(
        chosen=tried[best],
        candidates=tuple(Candidate(settings, round(score, 6)) for settings, score in pairs),
        query_split=on.query_split,
        support_split=on.support_split,
    )
