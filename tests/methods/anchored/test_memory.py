"""Remembered images: which they are, and how they are read after those of a batch."""

import numpy as np
import pytest

from transduce.methods.anchored.batch import ArrayRows
from transduce.methods.anchored.memory import JoinedRows, Memory, first_by_priority, priorities


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).normal(0, 1, (400, 20))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def memory_of(rows, view=None):
    labels = np.arange(len(rows))
    return Memory(rows, labels, labels + 1, view)


def test_the_hash_is_of_the_row_alone_and_spreads_evenly(rows):
    found = priorities(rows)
    np.testing.assert_array_equal(priorities(rows[::-1][:7]), found[::-1][:7])
    assert len(np.unique(found)) == 400
    shares = np.bincount((found >> np.uint64(62)).astype(int), minlength=4) / 400
    assert shares.min() > 0.15
    rounded = np.nextafter(rows, np.float32(1))
    assert (priorities(rounded) == found).mean() > 0.98


def test_the_first_by_priority_are_those_of_any_company(rows):
    chosen = first_by_priority(priorities(rows), 100)
    assert (np.diff(chosen) > 0).all()
    half = rows[np.union1d(chosen, np.arange(0, 400, 2))]
    again = half[first_by_priority(priorities(half), 100)]
    np.testing.assert_array_equal(again, rows[chosen])
    np.testing.assert_array_equal(first_by_priority(priorities(rows[:5]), 100), np.arange(5))


@pytest.mark.parametrize("seen", [False, True])
def test_rows_are_those_of_the_batch_and_then_of_the_memory(rows, seen):
    new = ArrayRows(rows[:30], rows[:30, :4] if seen else None)
    old = memory_of(rows[30:50], rows[30:50, :4] if seen else None)
    both = JoinedRows(new, old.rows())
    assert len(both) == 50
    for part in (slice(0, 10), slice(20, 40), slice(35, 50), slice(0, 50), slice(29, 31)):
        np.testing.assert_array_equal(both.images(part), rows[part])
        if seen:
            np.testing.assert_array_equal(both.view(part), rows[part, :4])
        else:
            assert both.view(part) is None
    for order in (np.array([49, 0, 30, 29]), np.array([31, 45]), np.array([3, 4])):
        expected = rows[order, :4] if seen else rows[order]
        np.testing.assert_array_equal(both.compared(order), expected)


def test_memories_join_and_are_kept_in_a_file(rows):
    one, two = memory_of(rows[:3], rows[:3, :2]), memory_of(rows[3:5], rows[3:5, :2])
    both = one.joined(two)
    read = Memory.from_arrays(both.arrays())
    np.testing.assert_array_equal(read.view, rows[:5, :2])
    np.testing.assert_array_equal(read.compared, read.view)
    np.testing.assert_array_equal(read.labels, [0, 1, 2, 0, 1])
    none = Memory.none(20)
    assert none.joined(both) is both
    assert both.joined(none) is both


def test_an_image_is_found_by_its_row_and_a_copy_of_it_apart(rows):
    held = memory_of(rows[[0, 1, 2, 1]])
    asked = np.nextafter(rows[[1, 5, 1, 1, 0]], np.float32(1))
    np.testing.assert_array_equal(held.find(asked), [1, -1, 3, -1, 0])
    np.testing.assert_array_equal(Memory.none(20).find(asked), np.full(5, -1))
