"""Products over threads."""

from threading import Lock

import numpy as np
import pytest

from transduce.simplex import threads
from transduce.simplex.threads import a_few_at_a_time, product, single_thread


def test_products_over_threads_have_the_bits_of_one_thread():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(600, 40)), random.normal(size=(40, 30))
    found = product(left, right)
    np.testing.assert_allclose(found, left @ right, rtol=1e-12)
    with single_thread():
        np.testing.assert_array_equal(found, product(left, right))


def test_a_few_at_a_time_come_in_order_and_never_more(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 2)
    slices, begun, taken, lock = [slice(i, i + 1) for i in range(9)], [], [], Lock()

    def work(piece):
        with lock:
            begun.append(piece.start)
            assert len(begun) - len(taken) <= 3  # two at work and one in waiting
        return piece.start

    for found in a_few_at_a_time(work, slices):
        with lock:
            taken.append(found)
    assert taken == sorted(begun) == list(range(9))
    with single_thread():
        assert list(a_few_at_a_time(lambda piece: piece.stop, slices)) == list(range(1, 10))


def test_what_fails_ends_the_others(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 2)
    begun = []

    def work(piece):
        begun.append(piece.start)
        if piece.start == 2:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(a_few_at_a_time(work, [slice(i, i + 1) for i in range(50)]))
    assert len(begun) < 8
