"""Bad input is refused before any work, with what was expected, what was found, and where."""

import numpy as np
import pytest

from transduce import METHODS, InvalidTask, Task

ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]])
IMAGES = np.array([[1.0, 0.2], [0.1, 2.0], [0.5, 0.5]])
CLASSES = np.array([[1.0, 0.0], [0.0, 3.0]])


def task(**changes):
    return Task(**({"query": ROWS, "zero_shot": ROWS} | changes))


def broken(row, column, value):
    rows = ROWS.copy()
    rows[row, column] = value
    return rows


REFUSED = {
    "off the simplex": ({"zero_shot": broken(2, 0, 0.9)}, "summing to 1.* 1.6 in row 2"),
    "query off the simplex": ({"query": broken(1, 0, 0.9)}, "query .* summing to 1.* in row 1"),
    "negative": ({"query": broken(3, 1, -0.25)}, "negative numbers in row 3"),
    "NaN": ({"query": broken(0, 0, np.nan)}, "query .* NaN or infinity in row 0"),
    "infinite": ({"zero_shot": broken(1, 2, np.inf)}, "zero_shot .* NaN or infinity in row 1"),
    "one dimension": ({"query": ROWS[0]}, "query with 2 dimensions.*found shape \\(3,\\)"),
    "words": ({"query": np.array([["a", "b", "c"]])}, "hold numbers, found dtype"),
    "ragged": ({"query": [[1.0], [0.5, 0.5]]}, "query to be a table of numbers"),
    "no query": ({"query": ROWS[:0], "zero_shot": ROWS[:0]}, "at least one row.*\\(0, 3\\)"),
    "one class": ({"query": np.ones((4, 1)), "zero_shot": np.ones((4, 1))}, "at least 2 classes"),
    "lengths": ({"query": ROWS[:2]}, "query and zero_shot of the same length, found 2 and 4"),
    "widths": ({"query": np.full((4, 2), 0.5)}, "each of 3 classes, found 2 columns"),
    "space": ({"space": "simplex"}, "space to be one of .* found 'simplex'"),
    "temperature": ({"temperature": 0.0}, "positive temperature, found 0.0"),
    "labels without support": ({"support_labels": np.arange(3)}, "found only support_labels"),
    "support without labels": ({"support": ROWS[:3]}, "found only support;"),
    "label count": (
        {"support": ROWS[:3], "support_labels": np.array([0, 1, 2, 0])},
        "support and support_labels of the same length, found 3 and 4",
    ),
    "label kind": ({"support": ROWS[:3], "support_labels": [0.0, 1.0, 2.0]}, "whole numbers"),
    "label shape": ({"support": ROWS[:3], "support_labels": [[0], [1], [2]]}, "1 dimension"),
    "class out of range": (
        {"support": ROWS[:3], "support_labels": [0, 3, 1]},
        "classes 0 to 2, found 3 in row 1",
    ),
    "negative class": ({"support": ROWS[:3], "support_labels": [0, 1, -1]}, "found -1 in row 2"),
    "empty support class": (
        {"support": ROWS[:3], "support_labels": [0, 1, 1]},
        "each of 3 classes, found none of class 2",
    ),
    "support off the simplex": (
        {"support": broken(1, 0, 0.9)[:3], "support_labels": [0, 1, 2]},
        "support .* in row 1",
    ),
    "class embeddings": ({"class_embeddings": np.eye(2)}, "one row for 3 classes, found 2"),
    "many rows": ({"query": np.full((4, 3), 0.5)}, "in rows 0, 1, 2, 3"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(changes, message):
    with pytest.raises(InvalidTask, match=message):
        task(**changes)


@pytest.mark.parametrize(
    ("images", "classes", "settings", "message"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], CLASSES, {}, "images .* only zeros in row 1"),
        (IMAGES, [[1.0, 0.0], [0.0, 0.0]], {}, "classes .* only zeros in row 1"),
        (IMAGES, np.eye(3), {}, "classes and images with as many columns, found 3 and 2.*encoder"),
        ([[np.nan, 1.0]], CLASSES, {}, "NaN or infinity in row 0"),
        (IMAGES, CLASSES, {"temperature": -1.0}, "positive temperature"),
        (IMAGES, CLASSES, {"support": np.eye(3), "support_labels": [0, 1, 1]}, "as many columns"),
        (IMAGES, CLASSES, {"space": "simplex"}, "space"),
    ],
)
def test_embeddings_refused(images, classes, settings, message):
    with pytest.raises(InvalidTask, match=message):
        Task.from_embeddings(images, classes, **settings)


def test_many_wrong_rows_are_counted():
    with pytest.raises(InvalidTask, match="rows 0, 1, 2, 3, 4 and 95 more"):
        task(query=np.full((100, 3), 0.5), zero_shot=np.full((100, 3), 1 / 3))


def test_embeddings_of_any_length_and_kind():
    found = Task.from_embeddings(IMAGES * 1e-30, CLASSES * 7, temperature=2.0)
    unit = IMAGES / np.linalg.norm(IMAGES, axis=1, keepdims=True)
    expected = np.exp(2 * unit) / np.exp(2 * unit).sum(1, keepdims=True)
    assert found.zero_shot == pytest.approx(expected)
    assert found.query is found.zero_shot
    half = Task.from_embeddings(IMAGES.astype(np.float16), CLASSES.tolist())
    assert half.query.dtype == np.float32
    whole = Task.from_embeddings([[1, 2], [3, 4]], [[1, 0], [0, 1]], space="embedding")
    assert whole.query == pytest.approx(np.array([[1, 2], [3, 4]]) / np.sqrt([[5], [25]]))


def test_arrays_are_not_copied():
    assert task().query is ROWS


def test_a_method_refuses_a_task_it_is_not_made_for():
    embedded = Task.from_embeddings(IMAGES, CLASSES, space="embedding")
    with pytest.raises(InvalidTask, match="space='probability'"):
        METHODS["em-dirichlet"]().predict(embedded)
    with pytest.raises(InvalidTask, match="Expected support for paddle"):
        METHODS["paddle"]().predict(task())


ODD = {
    "exact zeros and ones": np.eye(4)[[0, 1, 1, 2, 2, 2]],
    "duplicated rows": np.repeat(ROWS[:1], 6, axis=0),
    "one query": ROWS[:1],
    "more classes than queries": np.full((2, 30), 1 / 30),
    "one sure row": np.eye(5)[[3]],
}


@pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")
@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
@pytest.mark.parametrize("shots", [0, 1])
@pytest.mark.parametrize("name", [name for name, m in METHODS.items() if hasattr(m, "recipe")])
def test_odd_tasks_work_without_warnings(name, shots, rows):
    method = METHODS[name]()
    shots = max(shots, method.support == "needed")
    n_classes = rows.shape[1]
    support = np.full((n_classes, n_classes), 0.1 / n_classes) + 0.9 * np.eye(n_classes)
    odd = Task(
        query=rows,
        zero_shot=rows,
        support=support if shots else None,
        support_labels=np.arange(n_classes) if shots else None,
    )
    prediction = method.predict(odd)
    assert prediction.probabilities.shape == rows.shape
    assert np.isfinite(prediction.probabilities).all()
    assert prediction.probabilities.sum(1) == pytest.approx(1.0)
    assert np.isfinite(prediction.trace.objective).all()


def test_tasks_and_predictions_compare_by_identity():
    rows = np.full((3, 2), 0.5)
    one, other = (Task(query=rows, zero_shot=rows) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2
    first, second = (METHODS["zero-shot"]().predict(one) for _ in range(2))
    assert first != second
    assert len({first, second}) == 2


def test_embeddings_with_shots_of_some_classes():
    shots = {"support": np.eye(3)[:1], "support_labels": [0]}
    with pytest.raises(InvalidTask, match="a shot of each of 3 classes"):
        Task.from_embeddings(np.eye(3), np.eye(3), **shots)
    partial = Task.from_embeddings(np.eye(3), np.eye(3), **shots, partial_support=True)
    assert partial.partial_support
    assert METHODS["hard-em-dirichlet"]().predict(partial).labels.tolist() == [0, 1, 2]
