"""`predict_many`: many tasks in parallel, with the answers of one by one."""

import warnings
from collections.abc import Iterable

from transduce.errors import ConvergenceWarning, InvalidSetting
from transduce.methods.method import Method, without_convergence_warnings
from transduce.simplex.threads import available_cores, single_thread
from transduce.task import Prediction, Task


def predict_many(
    method: Method, tasks: Iterable[Task], *, workers: int | None = None
) -> list[Prediction]:
    """Predict many tasks, in parallel over processes.

    Parameters
    ----------
    method : Method
        The method, with its settings; it is sent to the processes, so it must pickle.
    tasks : iterable of Task
        The tasks, each labeled jointly and by itself.
    workers : int, optional
        Processes; by default one for each core. With 1, everything stays in this process, and a
        task may use all cores itself: better for few large tasks.

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
    workers = available_cores() if workers is None else workers
    if workers < 1:
        raise InvalidSetting(f"Expected at least 1 worker, found {workers}.")
    if min(workers, len(tasks)) <= 1:
        predictions = _predict_all(method, tasks)
    else:
        from joblib import Parallel, delayed  # here, because most uses never need it

        # Several tasks at a time: sending one costs about as much as solving a small one.
        chunk = max(1, min(32, len(tasks) // (4 * workers)))
        chunks = [tasks[start : start + chunk] for start in range(0, len(tasks), chunk)]
        parts = Parallel(n_jobs=workers)(delayed(_predict_chunk)(method, part) for part in chunks)
        predictions = [prediction for part in parts for prediction in part]
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


def _predict_all(method: Method, tasks: list[Task]) -> list[Prediction]:
    with without_convergence_warnings():
        return [method.predict(task) for task in tasks]


def _predict_chunk(method: Method, tasks: list[Task]) -> list[Prediction]:
    with single_thread():
        return _predict_all(method, tasks)
