"""A batch in chunks, in memory or elsewhere, has the answer of the batch as a whole."""

import numpy as np
import pytest

from tests.methods.anchored.test_anchored import simulated, task_of
from transduce import Anchored
from transduce.methods.anchored import batch as anchored_batch
from transduce.methods.anchored import passes as anchored_passes
from transduce.methods.anchored.batch import ArrayRows, KnownRows
from transduce.simplex.passes import chunks_of


def test_chunks_cover_a_batch_and_depend_on_its_size_alone():
    for size in (1, 7, 100, 101, 1000):
        chunks = chunks_of(size, 100)
        assert np.array_equal(np.concatenate([np.arange(size)[c] for c in chunks]), np.arange(size))
        assert max(c.stop - c.start for c in chunks) <= 100
        assert len(chunks) == 1 or len(chunks) % 4 == 0


@pytest.mark.parametrize("shots", [0, 20])
def test_labels_of_a_batch_in_chunks_are_those_of_the_whole(monkeypatch, shots):
    rows, texts, truth = simulated(3, images=240, classes=30, present=8)
    options = {"support": rows[:shots], "support_labels": truth[:shots]} if shots else {}
    task = task_of(
        rows[shots:],
        texts,
        view=rows[shots:, ::-1],
        **({**options, "support_view": rows[:shots, ::-1]} if shots else {}),
    )
    whole = Anchored().predict(task)
    monkeypatch.setattr(anchored_batch, "chunks_of", lambda size: chunks_of(size, 32))
    parts = Anchored().predict(task)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, atol=2e-4)


def test_any_order_of_work_and_any_source_of_rows_give_the_same_bits(monkeypatch):
    monkeypatch.setattr(anchored_batch, "chunks_of", lambda size: chunks_of(size, 32))
    rows, texts, _ = simulated(5, images=200, classes=30, present=8)

    class Halves:
        """Rows in two arrays, as in the shards of a store."""

        def __init__(self):
            self.parts = ArrayRows.of(rows[:90]), ArrayRows.of(rows[90:])

        def __len__(self):
            return len(rows)

        def images(self, part):
            return self.compared(np.arange(len(rows))[part])

        def view(self, part):
            return None

        def compared(self, chosen):
            return np.concatenate([part.unit for part in self.parts])[chosen]

    def backwards(work, batch, shared, chunks):
        done = {
            number: work(batch, shared, chunks[number]) for number in reversed(range(len(chunks)))
        }
        yield from (done[number] for number in range(len(chunks)))

    method = Anchored()
    threads = method.solve(ArrayRows.of(rows), texts)
    other = method.solve(Halves(), texts, passes=backwards)
    np.testing.assert_array_equal(threads.classes, other.classes)
    np.testing.assert_array_equal(threads.probabilities, other.probabilities)
    assert threads.trace == other.trace


def test_what_is_not_stored_of_a_flat_row_is_counted(monkeypatch):
    rows, texts, _ = simulated(1, images=90, classes=60, present=5)
    texts = texts + 0.3 * rows.mean(0)  # names that are hard to tell apart: many classes a row
    whole = Anchored(text_scale=20).predict(task_of(rows, texts))
    monkeypatch.setattr(anchored_passes, "MOST_STORED", 12)
    kept = Anchored(text_scale=20).predict(task_of(rows, texts))
    assert (kept.labels == whole.labels).mean() > 0.95


class Kept:
    """A checkpoint that stops the run after a step."""

    def __init__(self, stop=None):
        self.arrays, self.stop = [], stop

    def last(self):
        return self.arrays[-1] if self.arrays else None

    def keep(self, arrays):
        self.arrays.append(arrays)
        if len(self.arrays) == self.stop:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stop", [2, 6, 9])
@pytest.mark.parametrize("shots", [0, 24])
def test_a_stopped_batch_goes_on_to_the_same_bits(stop, shots):
    rows, texts, truth = simulated(4, images=150, classes=20, present=6)
    source = ArrayRows.of(rows[shots:])
    known = KnownRows.of(rows[:shots], truth[:shots]) if shots else None
    whole = Anchored().solve(source, texts, known)
    kept = Kept(stop)
    with pytest.raises(KeyboardInterrupt):
        Anchored().solve(source, texts, known, checkpoint=kept)
    resumed = Anchored().solve(source, texts, known, checkpoint=kept)
    assert len(kept.arrays) == 13  # the steps that were done are not done again
    np.testing.assert_array_equal(resumed.classes, whole.classes)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)
    assert resumed.trace == whole.trace
