"""Workers end with the process that started them, and listen to this machine alone."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transduce.machine.processes import family

ROOT = Path(__file__).parents[2]
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


@pytest.mark.parametrize(("kind", "fewest"), [("joblib", 3), ("ray", 6)])
def test_workers_end_with_a_killed_parent(kind, fewest):
    command = [sys.executable, "-m", "tests.attacks.listening", kind, str(fewest)]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(parent.stdout.readline())
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert len(told["workers"]) >= fewest
    assert set(told["listening"]) <= set(LOOPBACK)
    assert (kind == "ray") == bool(told["listening"])
    deadline = time.monotonic() + 30
    while (left := list(alive(told))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def alive(told):
    yield from family(told["mark"].encode(), [os.fsencode(name) for name in told["folders"]])
