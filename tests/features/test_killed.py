"""A run killed again and again, at random points, ends in the store of an undisturbed run."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.features.stores import assert_same_store
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import encoded, picture, write_pictures
from transduce.features.embedding import Resources, embed
from transduce.features.store import FeatureStore
from transduce.features.verification import verify_store

IMAGES = 240
KILLS = 10
ROOT = Path(__file__).parents[2]


@pytest.fixture
def photos(tmp_path):
    folder = write_pictures(tmp_path / "photos", IMAGES)
    for number in range(0, IMAGES, 33):  # some broken, some twice
        (folder / f"{number:05d}.jpg").write_bytes(encoded(picture(number))[: number % 7 * 40])
        (folder / f"{number + 1:05d}.jpg").write_bytes(encoded(picture(5)))
    return folder


def start(photos, out, delay):
    command = [sys.executable, "-m", "tests.features.embed_slowly", photos, out, str(delay)]
    return subprocess.Popen(command, cwd=ROOT)


def finished(out):
    return len(list((out / "shards").glob("*.json")))


def kill_after(process, out, more_shards, pause):
    """SIGKILL once so many more shards are done, and a moment later than that."""
    goal = finished(out) + more_shards
    deadline = time.monotonic() + 60
    while finished(out) < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    return process.wait()


def test_ten_kills_change_nothing(photos, tmp_path):
    chance = random.Random(7)
    out = tmp_path / "killed"
    codes, progress = [], []
    for _ in range(KILLS):
        process = start(photos, out, delay=0.02)
        # At times before the first shard, at times in the middle of the writing of one.
        codes.append(kill_after(process, out, chance.randint(0, 4), chance.uniform(0, 0.05)))
        progress.append(finished(out))
    assert codes.count(-9) == KILLS, f"too few were killed under way: {codes}"
    assert progress[-1] < IMAGES // 8, f"it was complete before the last kill: {progress}"
    assert len(set(progress)) > 3, f"hardly any kill came after some work: {progress}"
    assert start(photos, out, delay=0).wait() == 0

    embed(
        photos,
        TinyEncoder(),
        out=tmp_path / "whole",
        batch_size=4,
        resources=Resources(workers=1),
        shard_size=8,
    )
    assert_same_store(out, tmp_path / "whole")
    assert not list(out.rglob("*.tmp"))
    assert verify_store(out).problems == ()
    store = FeatureStore.open(out)
    assert sorted([*store.keys(), *(skip.file_name for skip in store.skipped())]) == [
        f"{number:05d}.jpg" for number in range(IMAGES)
    ]
