"""What the operating system refuses is one message and exit 2, with nothing half-written."""

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.images.pictures import write_pictures
from tests.labeling.stores import NAMES, write_simulated
from transduce.cli.refusals import ADVICE, refusal
from transduce.images.sources import find_images
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import LabelSettings

CLASSES = ",".join(NAMES)


def is_clear(outcome):
    """Exit 2, one line that begins with Error, nothing else."""
    code, _, err = outcome
    lines = [line for line in err.splitlines() if line.startswith("Error: Expected ")]
    return code == 2 and len(lines) == 1 and "Traceback" not in err


def leftovers(folder):
    return [path for path in folder.rglob(".*") if path.name != ".lock"]


@pytest.fixture
def photos(tmp_path):
    return write_pictures(tmp_path / "photos", 6)


@contextlib.contextmanager
def largest_file(size):
    """Let no file of this process grow beyond `size` bytes: the disk that is full everywhere."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("code", sorted(ADVICE), ids=errno.errorcode.get)
def test_every_known_refusal_says_what_to_do(code):
    message = refusal(OSError(code, os.strerror(code), "there"))
    assert message.startswith("Expected ")
    assert ", found " in message
    assert ": there; " in message
    assert refusal(OSError("odd")).startswith("Expected the system to agree, found odd;")


def test_a_full_disk_stops_embed(photos, small_disk, command):
    disk = small_disk(12)
    outcome = command(
        "embed", photos, "--encoder", "shapes", "--out", disk / "store", "--workers", "1", "-q"
    )
    assert is_clear(outcome)
    assert "room on the disk" in outcome[2]
    assert leftovers(disk) == []


def test_a_full_disk_stops_label_without_a_bus_error(simulated, small_disk, tmp_path):
    disk = small_disk(16)
    words = ["label", "--features", simulated, "--classes", CLASSES, "--out", disk, "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "transduce", *words], capture_output=True, text=True
    )
    assert is_clear((done.returncode, done.stdout, done.stderr)), done
    assert leftovers(disk) == []


def test_no_room_for_a_file_stops_label(simulated, command, tmp_path):
    with largest_file(2000):
        outcome = command("label", "--features", simulated, "--classes", CLASSES, "-q")
    assert is_clear(outcome)
    assert "raise the limit" in outcome[2]
    assert leftovers(tmp_path / "out") == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "label-studio"])
def test_no_room_for_a_file_stops_export(form, finished_run, command, tmp_path):
    with largest_file(1000):
        assert is_clear(command("export", finished_run, "--to", form, "--out", tmp_path / "x"))
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("out", ["file/below", "a" * 300, "/proc/none/here", "self/x"])
def test_an_impossible_out_is_refused(out, simulated, photos, command, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "self").symlink_to("self")
    features = ["--features", simulated, "--classes", CLASSES, "--out", out]
    assert is_clear(command("label", *features))
    assert is_clear(command("embed", photos, "--encoder", "shapes", "--out", out, "--workers", "1"))
    assert is_clear(command("features", "merge", simulated, simulated, "--out", out, "--prefix"))


def test_a_read_only_out_is_refused(simulated, small_disk, command):
    disk = small_disk(100)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    features = ["--features", simulated, "--classes", CLASSES]
    outcome = command("label", *features, "--out", disk)
    assert is_clear(outcome)
    assert "read-only" in outcome[2]


def test_links_in_circles_are_no_reason_to_stop(photos):
    (photos / "self").symlink_to("self")
    (photos / "self.jpg").symlink_to("self.jpg")
    (photos / "up").symlink_to("..")
    listing = find_images(str(photos))
    assert len(listing.entries) == 7  # what `up` leads to is this folder again
    assert [e.problem for e in listing.entries if e.key == "self.jpg"] == [
        f"cannot be read ({os.strerror(errno.ELOOP)})"
    ]


def test_a_folder_without_permission_is_skipped_with_its_reason(command):
    """Root may read everything, so that the test is somebody else while it lists."""
    with tempfile.TemporaryDirectory() as name:
        photos = write_pictures(Path(name) / "photos", 3)
        secret = write_pictures(photos / "secret", 1)
        Path(name).chmod(0o755)
        secret.chmod(0)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            entries = find_images(str(photos)).entries
        finally:
            if root:
                os.seteuid(0)
            secret.chmod(0o755)
    assert [(entry.key, entry.problem) for entry in entries if entry.problem] == [
        ("secret/", f"cannot be listed ({os.strerror(errno.EACCES)})")
    ]
    assert len(entries) == 4


def test_deep_folders_are_walked(photos):
    """As deep as a path may be, and deeper, where the rest is skipped with its reason."""
    descriptor = os.open(photos, os.O_RDONLY)
    for name in ["d"] * 1100 + ["e" * 250] * 10:
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    try:
        entries = find_images(str(photos)).entries
    finally:
        subprocess.run(["rm", "-rf", photos / "d"], check=True)  # shutil's recursion ends first
    assert [entry.problem for entry in entries if entry.problem] == [
        f"cannot be listed ({os.strerror(errno.ENAMETOOLONG)})"
    ]
    assert len(entries) == 7


def test_long_lists_of_classes_and_sources_are_no_paths(photos, command):
    colors, shapes = ("red", "green", "blue", "purple"), ("circle", "square", "triangle", "heart")
    names = [f"a {color} {shape} in the picture" for color in colors for shape in shapes]
    assert len(",".join(names)) > 255
    code, _, err = command(
        "label", photos, "--encoder", "shapes", "--classes", ",".join(names), "--workers", "1", "-q"
    )
    assert code == 0, err
    assert is_clear(command("label", "x" * 5000, "--classes", CLASSES))
    assert is_clear(command("label", photos, "--classes", CLASSES, "--seed", "-1"))


def test_a_folder_that_vanishes_is_a_message(simulated, tmp_path, command, monkeypatch):
    def vanish(run):
        shutil.rmtree(run.folder)

    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, features=str(simulated), encoder=""
    )
    with pytest.raises(OSError, match="No such file") as caught:
        run_labeling(settings, tmp_path / "out", complete=vanish)
    assert refusal(caught.value).startswith("Expected a file or folder that stays, found no such")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_run_is_published_with_its_report_or_not_at_all(simulated, tmp_path):
    class Stop(Exception):
        pass

    def stop(run):
        raise Stop

    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, features=str(simulated), encoder=""
    )
    with pytest.raises(Stop):
        run_labeling(settings, tmp_path / "out", complete=stop)
    assert list((tmp_path / "out").iterdir()) == []


LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import transduce.labeling.pipeline
from transduce.cli.main import run_command_line
pages = int(Path("/proc/self/statm").read_text().split()[0])
room = pages * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
run_command_line()
"""


def test_too_little_memory_is_a_message(tmp_path):
    names = [f"kind {number}" for number in range(2000)]
    write_simulated(tmp_path / "features", images=20_000, classes=names)
    (tmp_path / "classes.txt").write_text("\n".join(names))
    words = ["label", "--features", tmp_path / "features", "--classes-file"]
    words += [tmp_path / "classes.txt", "--out", tmp_path / "out", "--method", "zero-shot", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, *words], capture_output=True, text=True
    )
    assert is_clear((done.returncode, done.stdout, done.stderr)), done.stderr[-2000:]
    assert leftovers(tmp_path / "out") == []


INTERRUPTED_IMPORT = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "transduce.cli.bench":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from transduce.__main__ import main
main()
"""


def test_ctrl_c_among_the_imports_is_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"Stopped.\n")
    # Of this process; started in the background of a script it ignores Ctrl-C.
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
