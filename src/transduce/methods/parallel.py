"""`predict_many`: many tasks in parallel, with the answers of one by one."""

import warnings
from collections.abc import Iterable
from time import perf_counter

from transduce.errors import ConvergenceWarning, InvalidSetting
from transduce.methods.method import Method, without_convergence_warnings
from transduce.simplex.threads import available_cores, single_thread
from transduce.task import Prediction, Task

# Processes take seconds to begin: until this is known to pay, tasks are solved one by one.
TRIED = 1.0  # seconds
WORTH = 5.0  # seconds that are left


def predict_many(
    method: Method, tasks: Iterable[Task], *, workers: int | None = None
) -> list[Prediction]:
    """Predict many tasks, in parallel over processes where that pays.

    Parameters
    ----------
    method : Method
        The method, with its settings; it is sent to the processes, so it must pickle.
    tasks : iterable of Task
        The tasks, each labeled jointly and by itself.
    workers : int, optional
        Processes. With 1, everything stays in this process, and a task may use all cores itself:
        better for few large tasks. By default the first tasks are solved so, for a second; if
        the others would take more than five, they go to one process for each core.

    Returns
    -------
    list of Prediction
        One for each task, in order; the same whatever `workers` is.

    Warns
    -----
    ConvergenceWarning
        Once, with the number of tasks whose answer did not settle.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import METHODS, Task, predict_many
    >>> tasks = [Task.from_embeddings(np.eye(3) + i, np.eye(3)) for i in range(2)]
    >>> method = METHODS["hard-em-dirichlet"]()
    >>> [p.labels.tolist() for p in predict_many(method, tasks, workers=1)]
    [[0, 1, 2], [0, 1, 2]]
    """
    tasks = list(tasks)
    if workers is not None and workers < 1:
        raise InvalidSetting(f"Expected at least 1 worker, found {workers}.")
    predictions = _predict_first(method, tasks) if workers is None else []
    left = tasks[len(predictions) :]
    workers = available_cores() if workers is None else workers
    if min(workers, len(left)) <= 1:
        predictions += _predict_all(method, left)
    else:
        from joblib import Parallel, delayed  # here, because most uses never need it

        # Several tasks at a time: sending one costs about as much as solving a small one.
        chunk = max(1, min(32, len(left) // (4 * workers)))
        chunks = [left[start : start + chunk] for start in range(0, len(left), chunk)]
        parts = Parallel(n_jobs=workers)(delayed(_predict_chunk)(method, part) for part in chunks)
        predictions += [prediction for part in parts for prediction in part]
    unsettled = sum(not prediction.trace.converged for prediction in predictions)
    if unsettled and hasattr(method, "max_iter"):  # others keep a schedule that is theirs
        warnings.warn(
            f"Expected {method.name} to settle, found it still changing in {unsettled} of "
            f"{len(tasks)} tasks after the last iteration; raise max_iter, or ignore "
            "ConvergenceWarning to keep the published number of iterations.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return predictions


def _predict_first(method: Method, tasks: list[Task]) -> list[Prediction]:
    """Predict tasks one by one, until what is left is worth other processes."""
    predictions: list[Prediction] = []
    start = perf_counter()
    for number, task in enumerate(tasks):
        predictions += _predict_all(method, [task])
        if not number:
            start = perf_counter()  # the first may compile its method
            continue
        spent = perf_counter() - start
        if spent >= TRIED and spent / number * (len(tasks) - number - 1) >= WORTH:
            break
    return predictions


def _predict_all(method: Method, tasks: list[Task]) -> list[Prediction]:
    with without_convergence_warnings():
        return [method.predict(task) for task in tasks]


def _predict_chunk(method: Method, tasks: list[Task]) -> list[Prediction]:
    with single_thread():
        return _predict_all(method, tasks)
