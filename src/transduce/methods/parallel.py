"""Many tasks at once: parallel over tasks, with the answers of one by one."""

from collections.abc import Iterable

from transduce.errors import InvalidSetting
from transduce.methods.method import Method
from transduce.simplex.threads import available_cores, single_thread
from transduce.task import Prediction, Task


def predict_many(
    method: Method, tasks: Iterable[Task], *, workers: int | None = None
) -> list[Prediction]:
    """Predictions of `tasks` in order, by `workers` processes (by default, one for each core).

    With one worker everything stays in this process, and a task may use all cores itself.
    """
    tasks = list(tasks)
    workers = available_cores() if workers is None else workers
    if workers < 1:
        raise InvalidSetting(f"Expected at least 1 worker, found {workers}.")
    if min(workers, len(tasks)) <= 1:
        return [method.predict(task) for task in tasks]
    from joblib import Parallel, delayed  # here, because most uses never need it

    # Several tasks at a time: sending one costs about as much as solving a small one.
    chunk = max(1, min(32, len(tasks) // (4 * workers)))
    chunks = [tasks[start : start + chunk] for start in range(0, len(tasks), chunk)]
    parts = Parallel(n_jobs=workers)(delayed(_predict_chunk)(method, part) for part in chunks)
    return [prediction for part in parts for prediction in part]


def _predict_chunk(method: Method, tasks: list[Task]) -> list[Prediction]:
    with single_thread():
        return [method.predict(task) for task in tasks]
