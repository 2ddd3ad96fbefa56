"""Metrics of a task's answer, their catalogue, and paired comparison of methods over tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from transduce.catalogue import Catalogue
from transduce.task import Prediction, Task

Z95 = 1.959963984540054  # of the normal distribution: 95 % lie within
SIGNIFICANT = 0.05
CALIBRATION_BINS = 15

Truth = Int[np.ndarray, " query"]
TaskValue = int | float | tuple[float, ...]  # of one task


def mean_of_tasks(values: Sequence[TaskValue]) -> float:
    """Return the mean over tasks."""
    return float(np.mean(np.asarray(values, dtype=float)))


@dataclass(frozen=True)
class Metric:
    """A quantity computed for every task of a run, and the one number that sums a run up.

    Parameters
    ----------
    of_task : callable
        Function of (prediction, true labels of the queries, task). It returns a number, or a tuple
        where a run needs more than the mean of its tasks, such as the sums in bins of confidence.
    title : str
        Heading of the metric's table in a report.
    percent : bool, default True
        Show `of_run` times 100, with one digit; otherwise with three significant digits.
    of_run : callable, default the mean
        Function of the values of all tasks that returns one number.
    """

    of_task: Callable[[Prediction, Truth, Task], TaskValue]
    title: str
    percent: bool = True
    of_run: Callable[[Sequence[TaskValue]], float] = mean_of_tasks


def mean_per_class_recall(prediction: Prediction, truth: Truth, task: Task) -> float:
    """Return the recall of each class present in the queries, averaged over these classes."""
    sizes = np.bincount(truth)
    hits = np.bincount(truth[prediction.labels == truth], minlength=len(sizes))
    present = sizes > 0
    return round(float(np.mean(hits[present] / sizes[present])), 6)


def calibration_gaps(prediction: Prediction, truth: Truth, task: Task) -> tuple[float, ...]:
    """Return, for each bin of the largest probability, its sum minus the labels that are right.

    The number of queries stands last.
    """
    confidence = prediction.probabilities.max(1).astype(float)
    bins = np.minimum((CALIBRATION_BINS * confidence).astype(int), CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, confidence - (prediction.labels == truth), CALIBRATION_BINS)
    return (*(round(float(gap), 4) for gap in gaps), len(truth))


def expected_calibration_error(values: Sequence[TaskValue]) -> float:
    """Return the mean distance of probability and accuracy over bins, all tasks pooled."""
    *gaps, queries = np.sum(np.asarray(values, dtype=float), axis=0)
    return float(np.abs(gaps).sum() / queries)


# A metric is one function and one line here. Results computed before the line was added have no
# such column; reports leave the metric's cells of these results empty.
METRICS: Catalogue[Metric] = Catalogue(
    "metric",
    {
        "mean_per_class_recall": Metric(mean_per_class_recall, "Mean recall per class present, %"),
        "calibration": Metric(
            calibration_gaps,
            "Expected calibration error, %",
            of_run=expected_calibration_error,
        ),
    },
)


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over tasks and half the width of its 95 % interval."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()), Z95 * float(array.std(ddof=1)) / len(array) ** 0.5


@dataclass(frozen=True)
class Comparison:
    """Difference between two methods on the same tasks: paired, two-sided."""

    difference: float  # mean over tasks of first minus second
    interval: float  # half the width of its 95 % interval
    p_value: float
    wins: int  # tasks on which the first is ahead
    losses: int

    @property
    def significant(self) -> bool:
        """Whether the test finds a difference at the level of 5 %."""
        return self.p_value < SIGNIFICANT


def compare_paired(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Return Student's paired test over tasks, `first` minus `second`."""
    from scipy.special import stdtr  # here, because scipy is slow to import

    gaps = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, interval = mean_and_interval(list(gaps))
    error = interval / Z95
    if error == 0.0:
        p_value = 1.0 if mean == 0.0 else 0.0
    else:
        p_value = float(2.0 * stdtr(len(gaps) - 1, -abs(mean) / error))
    return Comparison(mean, interval, p_value, int((gaps > 0).sum()), int((gaps < 0).sum()))
