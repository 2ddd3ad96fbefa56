"""The program of a decoding process: requests on stdin, answers and pixels on stdout.

One JSON line a request, one JSON line and raw floats an answer, so nothing read from it can run
code. A program rather than a fork: no model, thread or `__main__` of the caller comes along, and it
can be killed at any time. `images.pool` starts it.
"""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from transduce.encoders.encoder import Preprocessing
from transduce.images.confinement import allow_seconds, confine
from transduce.images.decoding import MOST_BYTES, Decoding, decode, known_formats, read_bytes
from transduce.images.entries import Unreadable


def answer(request: Mapping[str, Any], how: Decoding) -> tuple[dict[str, Any], bytes]:
    """Return what is known of the requested image (or why it is unreadable), and its pixels."""
    try:
        data = read_bytes(request["path"], request["offset"], request["size"])
        decoded = decode(data, how)
    except Unreadable as error:
        return {"reason": error.reason, "detail": error.detail}, b""
    except Exception as error:  # a surprise in one file must not end the run
        return {"reason": "corrupt", "detail": f"{type(error).__name__}: {error}"}, b""
    known = {
        "width": decoded.width,
        "height": decoded.height,
        "sha256": decoded.sha256,
        "converted": decoded.converted,
    }
    return known, b"".join(pixels.tobytes() for pixels in (decoded.pixels, *decoded.also))


def answer_requests(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until their stream ends; the first line is the `Decoding`."""
    first = json.loads(requests.readline())
    parent = first.pop("parent")
    preprocessing = _preprocessing(first.pop("preprocessing"))
    also = tuple(_preprocessing(settings) for settings in first.pop("also"))
    how = Decoding(preprocessing=preprocessing, also=also, **first)
    known_formats()  # imports the decoders, which takes files and time
    confine(parent, how.most_pixels, MOST_BYTES)
    answers.write(b"ready\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        allow_seconds(request["seconds"])
        known, pixels = answer(request, how)
        answers.write(json.dumps(known).encode() + b"\n")
        answers.write(pixels)
        answers.flush()


def _preprocessing(settings: Mapping[str, Any]) -> Preprocessing:
    colors = {name: tuple(settings[name]) for name in ("mean", "std")}
    return Preprocessing(**{**settings, **colors})


def serve_standard_streams() -> None:
    """Answer requests on stdin; libraries that print cannot disturb the answers."""
    # Libraries in C print on the standard streams; the answers go through a private copy.
    # So do the requests: no library reads what is meant for us.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        os.dup2(silence, stream.fileno())
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        answer_requests(requests, answers)
    os._exit(0)  # nothing to clean up, and a closed pipe would complain on the way out


if __name__ == "__main__":
    serve_standard_streams()
