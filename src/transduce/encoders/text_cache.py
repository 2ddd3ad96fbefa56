"""Class embeddings kept on disk: a thousand classes are encoded once, not once per run.

A file that is not what was written (cut short, overwritten) is ignored and written anew; a folder
that cannot be written only costs the time to encode again.
"""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import platformdirs
from jaxtyping import Float32

from transduce.encoders.encoder import Identity

VARIABLE = "TRANSDUCE_CACHE"
DIGEST_BYTES = 32


def folder() -> Path:
    """Return $TRANSDUCE_CACHE, or `transduce` in the platform's folder for caches."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("transduce", appauthor=False)


def key_of(identity: Identity, prompts: Sequence[str], templates: Sequence[str]) -> str:
    """Return the name of a cache entry: a hash of all that decides the embeddings."""
    contents = [asdict(identity), list(prompts), list(templates)]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def read_cached(
    key: str, shape: tuple[int, int], cache: Path | None = None
) -> Float32[np.ndarray, "class feature"] | None:
    """Return the kept embeddings, or None: nothing there, or not what was written."""
    try:
        contents = _path(key, cache).read_bytes()
    except OSError:
        return None
    body, digest = contents[:-DIGEST_BYTES], contents[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    try:
        embeddings = np.load(io.BytesIO(body), allow_pickle=False)
    except (ValueError, EOFError):
        return None
    if embeddings.shape != shape or embeddings.dtype != np.float32:
        return None
    return embeddings


def write_cached(
    key: str, embeddings: Float32[np.ndarray, "class feature"], cache: Path | None = None
) -> None:
    """Write all of it or nothing, also when two processes write the same at once."""
    body = io.BytesIO()
    np.save(body, embeddings, allow_pickle=False)
    path = _path(key, cache)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{key[:8]}-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body.getvalue() + hashlib.sha256(body.getvalue()).digest())
        Path(partial).replace(path)
    except OSError:
        Path(partial).unlink(missing_ok=True)


def _path(key: str, cache: Path | None) -> Path:
    return (cache or folder()) / "texts" / f"{key}.npy"
