"""The decoding process: a request per line on stdin, an answer per line (and pixels) on stdout.

It is its own program, not a fork: no model, no threads and no `__main__` of the caller come along,
and it can be killed at any time. JSON and raw floats, so nothing read from it can run code.
"""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from transduce.encoders.preprocessing import Preprocessing
from transduce.images import tables
from transduce.images.decoding import MOST_BYTES, Decoding, Unreadable, decode


def read_bytes(path: str, offset: int | None, size: int) -> bytes:
    """The bytes of a file, of a member of an archive from `offset` on, or of a row of a table."""
    if size > MOST_BYTES:
        raise Unreadable("too large", f"{size:,} bytes; the limit is {MOST_BYTES:,}")
    try:
        if offset is not None and tables.is_table(path):
            return tables.read_row(path, offset)
        with _open(path) as file:
            if offset is None:
                data: bytes = file.read(MOST_BYTES + 1)
            else:
                file.seek(offset)
                data = file.read(size)
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("missing", "no such file") from None
    except PermissionError:
        raise Unreadable("no permission", "the file may not be read") from None
    except Exception as error:  # file systems behind URLs have errors of their own kinds
        raise Unreadable("cannot be read", f"{type(error).__name__}: {error}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable("too large", f"more than {MOST_BYTES:,} bytes")
    if offset is not None and len(data) < size:
        raise Unreadable("truncated", "the archive ends inside this file")
    return data


@contextlib.contextmanager
def _open(path: str) -> Any:  # noqa: ANN401 - fsspec's files have no common type
    if "://" not in path:
        with open(path, "rb") as file:  # noqa: PTH123 - called for each picture
            yield file
        return
    from transduce.images.remote import open_remote

    with open_remote(path) as file:
        yield file


def answer(request: Mapping[str, Any], how: Decoding) -> tuple[dict[str, Any], bytes]:
    try:
        data = read_bytes(request["path"], request["offset"], request["size"])
        decoded = decode(data, how)
    except Unreadable as error:
        return {"reason": error.reason, "detail": error.detail}, b""
    except Exception as error:  # a surprise in one file must not end the run
        return {"reason": "corrupt", "detail": f"{type(error).__name__}: {error}"}, b""
    found = {
        "width": decoded.width,
        "height": decoded.height,
        "sha256": decoded.sha256,
        "converted": decoded.converted,
    }
    return found, decoded.pixels.tobytes()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    first = json.loads(requests.readline())
    preprocessing = dict(first.pop("preprocessing"))
    preprocessing["mean"] = tuple(preprocessing["mean"])
    preprocessing["std"] = tuple(preprocessing["std"])
    how = Decoding(preprocessing=Preprocessing(**preprocessing), **first)
    answers.write(b"ready\n")
    answers.flush()
    for line in requests:
        found, pixels = answer(json.loads(line), how)
        answers.write(json.dumps(found).encode() + b"\n")
        answers.write(pixels)
        answers.flush()


def main() -> None:
    # Libraries in C print on the standard streams; the answers go through a private copy.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())
    os.dup2(silence, sys.stderr.fileno())
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # nothing to clean up, and a closed pipe would complain on the way out


if __name__ == "__main__":
    main()
