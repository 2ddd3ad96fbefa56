"""Checks of arrays and settings: each raises an error that names what was expected and found."""

import math
from collections.abc import Callable
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from transduce.errors import InvalidSetting, InvalidTask, TransduceError, some_of

SUM_TOLERANCE = 1e-3  # float16 probabilities over a thousand classes still pass
MOST_ROWS_NAMED = 5


def matrix(name: str, rows: ArrayLike) -> Float[np.ndarray, "row column"]:
    """Return `rows` as a 2-D float32 or float64 array, copied only if it is not one.

    NaN and infinity are refused.
    """
    try:
        array = np.asarray(rows)
    except ValueError as error:
        raise InvalidTask(f"Expected {name} to be a table of numbers, found {error}.") from None
    if array.dtype.kind not in "fiu":
        raise InvalidTask(f"Expected {name} to hold numbers, found dtype {array.dtype}.")
    if array.ndim != 2:
        raise InvalidTask(
            f"Expected {name} with 2 dimensions (one row each), found shape {array.shape}."
        )
    if array.size == 0:
        raise InvalidTask(f"Expected {name} with at least one row, found shape {array.shape}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    # A row's sum of |x| is finite just when each of its entries is, and needs no copy.
    with np.errstate(all="ignore"):  # what is not finite is refused below, in words
        few = len(array) < 4096
        sums = np.abs(array).sum(1, dtype=np.float64) if few else _absolute_sums(array)
    _refuse_rows(name, ~np.isfinite(sums), "finite numbers", "NaN or infinity", "remove them")
    return array


def simplex_rows(name: str, rows: ArrayLike) -> Float[np.ndarray, "row class"]:
    """Return rows of probabilities (row, class): nonnegative, summing to one."""
    array = matrix(name, rows)
    remedy = "apply a softmax, or use Task.from_embeddings"
    _refuse_rows(name, array.min(1) < 0, "probabilities", "negative numbers", remedy)
    sums = array.sum(1, dtype=np.float64)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    actual = f"sums such as {sums[wrong][0]:.6g}" if wrong.any() else ""
    _refuse_rows(name, wrong, "rows summing to 1", actual, "normalize them")
    return array


def nonzero_rows(name: str, rows: ArrayLike) -> Float[np.ndarray, "row feature"]:
    """Return vectors (row, feature) of which none is all zeros."""
    array = matrix(name, rows)
    _refuse_rows(
        name, np.asarray(~array.any(1)), "vectors with a direction", "only zeros", "remove them"
    )
    return array


def unit_rows(
    name: str,
    rows: ArrayLike,
    *,
    error: type[Exception] = InvalidTask,
    row_name: Callable[[int], str] | None = None,
) -> Float[np.ndarray, "row feature"]:
    """Return vectors of any length scaled to unit length, as a new array.

    Rows of zeros, NaN or infinity are refused with `error`; `row_name` says how to call them.
    """
    try:
        array = nonzero_rows(name, rows)
    except InvalidTask as problem:
        if row_name is not None and np.ndim(rows) == 2:
            _refuse_named_rows(name, np.asarray(rows), row_name, error)
        raise error(str(problem)) from None
    # Dividing by the largest entry first keeps tiny and huge vectors from under- or overflowing.
    scaled = array / np.abs(array).max(1, keepdims=True)
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _refuse_named_rows(
    name: str, rows: np.ndarray, row_name: Callable[[int], str], error: type[Exception]
) -> None:
    sums = np.abs(rows.astype(np.float64)).sum(1)
    wrong = np.flatnonzero(~(np.isfinite(sums) & (sums > 0)))
    if len(wrong):
        shown, rest = wrong[:MOST_ROWS_NAMED], wrong[MOST_ROWS_NAMED:]
        names = [*(row_name(int(row)) for row in shown), *rest]
        raise error(
            f"Expected finite vectors with a direction in {name}, found NaN, infinity or only "
            f"zeros in {some_of(names, MOST_ROWS_NAMED)}; make them again, or remove them."
        ) from None


def label_vector(name: str, labels: ArrayLike | None, n_classes: int) -> Int[np.ndarray, " row"]:
    """Return a vector of class indices 0 .. n_classes - 1, as int64."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InvalidTask(f"Expected {name} with 1 dimension, found shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InvalidTask(f"Expected {name} to be whole numbers, found dtype {array.dtype}.")
    outside = (array < 0) | (array >= n_classes)
    actual = f"{array[outside][0]}" if outside.any() else ""
    _refuse_rows(name, outside, f"classes 0 to {n_classes - 1}", actual, "renumber them")
    return array.astype(np.int64, copy=False)


def every_class_present(name: str, labels: Int[np.ndarray, " row"], n_classes: int) -> None:
    """Raise `InvalidTask` unless every class occurs among the labels."""
    counts = np.bincount(labels, minlength=n_classes)
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        raise InvalidTask(
            f"Expected {name} to hold a shot of each of {n_classes} classes, found none of "
            f"{_some(missing, 'class', 'classes')}; add shots, or leave the support out."
        )


def same_length(name: str, array: ArrayLike, other_name: str, other: ArrayLike) -> None:
    """Raise `InvalidTask` unless two arrays have as many rows."""
    if len(np.asarray(array)) != len(np.asarray(other)):
        raise InvalidTask(
            f"Expected {name} and {other_name} of the same length, "
            f"found {len(np.asarray(array))} and {len(np.asarray(other))}."
        )


def as_many(name: str, array: Float[np.ndarray, "row column"], of: str, count: int) -> None:
    """Raise `InvalidTask` unless an array has `count` rows, one for each `of`."""
    if len(array) != count:
        raise InvalidTask(f"Expected {name} with one row for {count} {of}, found {len(array)}.")


def same_width(
    name: str,
    array: Float[np.ndarray, "row column"],
    other_name: str,
    other: Float[np.ndarray, "other_row other_column"],
) -> None:
    """Raise `InvalidTask` unless two arrays have as many columns."""
    if array.shape[1] != other.shape[1]:
        raise InvalidTask(
            f"Expected {name} and {other_name} with as many columns, found {array.shape[1]} and "
            f"{other.shape[1]}; were they made by the same encoder?"
        )


def probability_width(
    space: str, query: Float[np.ndarray, "query feature"], n_classes: int
) -> None:
    """Raise `InvalidTask` unless queries in the probability space have a column per class."""
    if space == "probability" and query.shape[1] != n_classes:
        raise InvalidTask(
            f"Expected query with a probability for each of {n_classes} classes, "
            f"found {query.shape[1]} columns."
        )


def positive(name: str, value: float, error: type[TransduceError] = InvalidSetting) -> None:
    """Raise `error` unless a number is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise error(f"Expected a positive {name}, found {value!r}.")


def at_least_zero(name: str, value: float) -> None:
    """Raise `InvalidSetting` unless a number is finite and not negative."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidSetting(f"Expected {name} of at least 0, found {value!r}.")


def whole_from_one(name: str, value: int) -> None:
    """Raise `InvalidSetting` unless a value is a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidSetting(f"Expected {name} to be a whole number from 1, found {value!r}.")


def _absolute_sums(array: Float[np.ndarray, "row column"]) -> Float[np.ndarray, " row"]:
    sums = [np.abs(array[i : i + 1024]).sum(1, dtype=float) for i in range(0, len(array), 1024)]
    return np.concatenate(sums)


def _refuse_rows(name: str, wrong: np.ndarray, expected: str, found: str, remedy: str) -> None:
    if wrong.any():
        where = _some(np.flatnonzero(wrong), "row", "rows")
        raise InvalidTask(
            f"Expected {name} to hold {expected}, found {found} in {where}; {remedy}."
        )


def _some(indices: Int[np.ndarray, " n"], singular: str, plural: str) -> str:
    return (
        f"{singular if len(indices) == 1 else plural} {some_of(indices.tolist(), MOST_ROWS_NAMED)}"
    )
