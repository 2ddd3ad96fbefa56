import os
import signal
import time

import numpy as np
import pytest

from tests.images.pictures import encoded, picture, write_pictures
from transduce.encoders.encoder import Preprocessing
from transduce.errors import WorkerFailed
from transduce.images.decoding import Decoding, decode
from transduce.images.entries import Entry, Unreadable, local_entry
from transduce.images.pool import DecodingPool, Readable
from transduce.images.sources import find_images

HOW = Decoding(Preprocessing(size=16))


def test_pixels_land_in_their_rows(tmp_path):
    entries = find_images(str(write_pictures(tmp_path / "photos", 20))).entries
    with DecodingPool(HOW, workers=2) as pool:
        batch = pool.submit(entries)
        batch.wait()
    for number, outcome in enumerate(batch.outcomes):
        expected = decode(encoded(picture(number)), HOW)
        assert isinstance(outcome, Readable)
        assert outcome.sha256 == expected.sha256
        np.testing.assert_array_equal(batch.pixels[number], expected.pixels)


def test_memory_of_a_recycled_batch_is_used_again(tmp_path):
    entries = find_images(str(write_pictures(tmp_path / "photos", 4))).entries
    with DecodingPool(HOW, workers=1) as pool:
        first = pool.submit(entries)
        first.wait()
        pool.recycle(first)
        second = pool.submit(entries)
        second.wait()
    assert second.pixels is first.pixels


@pytest.fixture
def pipe(tmp_path):
    """A file that never ends its reading: nobody writes into this pipe."""
    path = tmp_path / "waits.jpg"
    os.mkfifo(path)
    return path


def test_a_file_that_hangs_is_given_up_and_the_rest_goes_on(tmp_path, pipe):
    good = find_images(str(write_pictures(tmp_path / "photos", 6))).entries
    # As listed, a pipe is no file; a network share that hangs looks like one.
    hanging = Entry("waits.jpg", str(pipe), size=1)
    with DecodingPool(HOW, workers=1, time_limit=1.0) as pool:
        batch = pool.submit([good[0], hanging, *good[1:]])
        batch.wait()
    assert isinstance(batch.outcomes[1], Unreadable)
    assert str(batch.outcomes[1]) == "took too long: more than 1 s"
    others = [outcome for row, outcome in enumerate(batch.outcomes) if row != 1]
    assert all(isinstance(outcome, Readable) for outcome in others)


def test_a_process_that_dies_once_is_replaced_and_the_file_read(tmp_path, pipe):
    entries = find_images(str(write_pictures(tmp_path / "photos", 6))).entries
    with DecodingPool(HOW, workers=1) as pool:
        pool.submit(entries[:1]).wait()
        os.kill(pool._processes[0]._popen.pid, signal.SIGSEGV)
        batch = pool.submit(entries)
        batch.wait()
    assert all(isinstance(outcome, Readable) for outcome in batch.outcomes)


def test_a_file_that_kills_its_process_each_time_is_skipped(tmp_path, pipe):
    good = find_images(str(write_pictures(tmp_path / "photos", 2))).entries
    killer = Entry("killer.jpg", str(pipe), size=1)
    with DecodingPool(HOW, workers=1, time_limit=60) as pool:
        batch = pool.submit([killer, good[0]])
        for _ in range(2):  # the first process, and the second that is tried after it
            _kill(_next_process(pool))
        batch.wait()
    assert isinstance(batch.outcomes[0], Unreadable)
    assert str(batch.outcomes[0]) == f"crashed the decoder: exit code {-signal.SIGSEGV}"
    assert isinstance(batch.outcomes[1], Readable)


def _next_process(pool):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        alive = [process for process in pool._processes if not process.ended]
        if alive:
            return alive[0]
        time.sleep(0.01)
    raise AssertionError("no process was started")


def _kill(process):
    os.kill(process._popen.pid, signal.SIGSEGV)
    deadline = time.monotonic() + 30
    while not process.ended and time.monotonic() < deadline:
        time.sleep(0.01)


def test_closing_does_not_wait_for_a_hanging_file(pipe):
    hanging = Entry("waits.jpg", str(pipe), size=1)
    with DecodingPool(HOW, workers=1, time_limit=600) as pool:
        pool.submit([hanging])
        process = _next_process(pool)
    assert process._popen.poll() is not None


def test_a_process_that_cannot_start_is_an_error_not_a_skipped_file(tmp_path, monkeypatch):
    entries = find_images(str(write_pictures(tmp_path / "photos", 2))).entries
    monkeypatch.setattr("sys.executable", "/bin/false")
    with DecodingPool(HOW, workers=1) as pool:
        batch = pool.submit(entries)
        with pytest.raises(WorkerFailed, match="Expected a decoding process to start"):
            batch.wait()


def test_problems_known_from_listing_are_kept(tmp_path):
    missing = local_entry("gone.jpg", tmp_path / "gone.jpg")
    with DecodingPool(HOW, workers=1) as pool:
        batch = pool.submit([missing])
        batch.wait()
        assert not pool._processes
    assert str(batch.outcomes[0]) == "missing"
