"""Files that are no images, or too much of one, and what a decoding process cannot do."""

import io
import json
import os
import random
import subprocess
import sys
import time

import pytest
from PIL import Image, features

from tests.images.pictures import encoded, picture, write_pictures
from transduce.encoders.encoder import Preprocessing
from transduce.images import decoding
from transduce.images.decoding import Decoding, decode
from transduce.images.entries import Unreadable
from transduce.images.pool import DecodingPool, DecodingProcess, Readable
from transduce.images.sources import find_images

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
SMALL = Decoding(Preprocessing(size=32))


def reason_of(data):
    with pytest.raises(Unreadable) as caught:
        decode(data, SMALL)
    return caught.value


def test_postscript_reaches_no_ghostscript(tmp_path, monkeypatch):
    """A .jpg that is PostScript, and a program called gs that would tell of it."""
    told = tmp_path / "told"
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho called >> {told}\ncat >> {told}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    photos = write_pictures(tmp_path / "photos", 1)
    (photos / "holiday.jpg").write_bytes(POSTSCRIPT)
    with DecodingPool(SMALL, workers=1) as pool:
        batch = pool.submit(find_images(str(photos)).entries)
        batch.wait()
    assert isinstance(batch.outcomes[0], Readable)
    assert str(batch.outcomes[1]) == "not an image: no known image format"
    assert reason_of(POSTSCRIPT).reason == "not an image"
    assert not told.exists()


@pytest.mark.parametrize("kind", ["EPS", "PDF", "SPIDER", "MSP", "XBM"])
def test_formats_outside_the_list_are_no_images(kind):
    Image.init()
    mode = {"SPIDER": "F", "MSP": "1", "XBM": "1"}.get(kind, "RGB")
    data = io.BytesIO()
    picture().convert(mode).save(data, kind)
    assert reason_of(data.getvalue()).reason == "not an image"


@pytest.mark.parametrize(
    "kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF", "JPEG2000", "ICO", "QOI"]
)
def test_formats_on_the_list_are_decoded(kind):
    known = decoding.known_formats()
    if kind == "AVIF" and not features.check("avif"):
        assert kind not in known
        return
    assert decode(encoded(picture(), kind), SMALL).pixels.shape == (3, 32, 32)


def test_heic_without_its_extra_is_named(monkeypatch):
    monkeypatch.setattr(decoding, "known_formats", lambda: ("JPEG", "PNG"))
    found = reason_of(encoded(picture(), "HEIF"))
    assert str(found) == 'needs an extra: HEIC: pip install "transduce[heif]"'


CONFINED = """
import ctypes, json, os, subprocess, threading
from transduce.images.confinement import confine
confine(os.getppid(), 1000, 1000)
seen = {"system": ctypes.CDLL(None).system(b"true")}
try:
    subprocess.run(["true"])
except PermissionError as error:
    seen["popen"] = str(error)
try:
    bytearray(8 << 30)
except MemoryError:
    seen["memory"] = "refused"
thread = threading.Thread(target=lambda: seen.update(thread="works"))
thread.start()
thread.join()
try:
    files = [open(os.devnull) for _ in range(1000)]
except OSError as error:
    seen["files"] = error.errno
print(json.dumps(seen))
"""


def test_a_decoding_process_starts_nothing_and_has_limits():
    done = subprocess.run([sys.executable, "-c", CONFINED], capture_output=True, text=True)
    seen = json.loads(done.stdout)
    if sys.platform == "linux":
        assert seen.pop("system") in (-1, 127 << 8)  # of the kernel: Python sees no such call
    assert seen == {
        "popen": "[Errno 1] a decoding process starts nothing",
        "memory": "refused",
        "thread": "works",
        "files": 24,
    }


def test_a_decoding_process_ends_with_its_parent():
    """Its parent is killed while the process waits for a request that nobody will send."""
    script = (
        "import time\n"
        "from transduce.images.decoding import Decoding\n"
        "from transduce.images.pool import DecodingProcess\n"
        "process = DecodingProcess(Decoding())\n"
        "print(process._popen.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{worker}")  # noqa: PTH110


def test_requests_are_not_the_standard_input_of_a_decoder():
    process = DecodingProcess(SMALL)
    try:
        assert os.readlink(f"/proc/{process._popen.pid}/fd/0") == os.devnull  # noqa: PTH115
    finally:
        process.close()


KINDS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF", "JPEG2000", "ICO", "QOI")


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_images_are_read_or_refused_with_a_reason(kind):
    chance = random.Random(f"mutated {kind}")
    whole, reasons = encoded(picture(3), kind), set()
    for _ in range(20):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            decode(bytes(data[: chance.randint(1, len(data))]), SMALL)
        except Unreadable as refused:
            reasons.add(refused.reason)
    assert reasons
    assert "" not in reasons
