"""Class embeddings: names to sentences to a unit vector per class, kept on disk.

A thousand classes are encoded once, not once per run. A cached file that is not what was written
(cut short, overwritten) is ignored and written anew; a folder that cannot be written only costs the
time to encode again.
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

from transduce import validation
from transduce.encoders.class_names import ClassNames, alternatives, class_names_from
from transduce.encoders.encoder import DEFAULT_TEMPLATE as DEFAULT_TEMPLATE
from transduce.encoders.encoder import Encoder, Identity
from transduce.errors import InvalidEncoder, InvalidTemplate

BLANK = "{}"
_EXAMPLE = f'write one such as "{DEFAULT_TEMPLATE}".'
CACHE_VARIABLE = "TRANSDUCE_CACHE"
DIGEST_BYTES = 32


def sentences(prompts: Sequence[str], template: str) -> list[str]:
    """Return the template about each class. Only `{}` is replaced; other braces mean nothing."""
    _accept([template])
    return [template.replace(BLANK, prompt) for prompt in prompts]


def embed_classes(
    encoder: Encoder,
    classes: str | Sequence[str] | ClassNames,
    templates: Sequence[str] = (DEFAULT_TEMPLATE,),
    *,
    cache: Path | None = None,
) -> Float32[np.ndarray, "class feature"]:
    """Return a unit embedding per class; of several templates or names, the direction of the mean.

    The result is kept on disk under (encoder, prompts, templates), in `cache` or by default in
    `text_cache_folder()`, and the text tower is not even loaded the next time.

    Parameters
    ----------
    encoder : Encoder
        Its text tower embeds the sentences.
    classes : sequence of str, str or ClassNames
        Two or more class names, or text with commas between them.
    templates : sequence of str, default ("a photo of a {}.",)
        Sentences with `{}` where the class goes.
    cache : Path, optional
        The folder of the cache.

    Returns
    -------
    ndarray of float32, shape (class, feature)
        Vectors of length 1.
    """
    _accept(templates)
    if isinstance(classes, str):
        classes = class_names_from(classes)
    elif not isinstance(classes, ClassNames):
        classes = ClassNames.of(classes)
    key = cache_key(encoder.identity, classes.prompts, templates)
    kept = read_cached(key, (len(classes), encoder.identity.dimension), cache)
    if kept is not None:
        return kept
    embeddings = _ensemble(encoder, classes.prompts, templates)
    write_cached(key, embeddings, cache)
    return embeddings


def _ensemble(
    encoder: Encoder, prompts: Sequence[str], templates: Sequence[str]
) -> Float32[np.ndarray, "class feature"]:
    names = [name for prompt in prompts for name in alternatives(prompt)]
    every = [sentence for template in templates for sentence in sentences(names, template)]
    units = _directions(encoder.embed_texts(every), every)
    means = units.reshape(len(templates), len(names), -1).mean(0)
    if len(names) > len(prompts):
        counts = [len(alternatives(prompt)) for prompt in prompts]
        starts = np.cumsum([0, *counts[:-1]])
        means = np.add.reduceat(means, starts, axis=0) / np.array(counts, np.float32)[:, None]
    return _directions(means, prompts)


def _directions(
    rows: Float32[np.ndarray, "row feature"], sources: Sequence[str]
) -> Float32[np.ndarray, "row feature"]:
    where = "the text embeddings (a broken text tower, or templates that cancel out)"
    doubles = rows.astype(np.float64)  # rounded once, at the end
    units = validation.unit_rows(
        where, doubles, error=InvalidEncoder, row_name=lambda row: repr(sources[row])
    )
    return units.astype(np.float32)


def _accept(templates: Sequence[str]) -> None:
    if isinstance(templates, str):  # a string is a sequence of strings too: its letters
        raise InvalidTemplate(
            f"Expected a list of templates, found one string; write [{templates!r}]."
        )
    if not templates:
        raise InvalidTemplate(f"Expected at least one template, found none; {_EXAMPLE}")
    for template in templates:
        if BLANK not in template:
            raise InvalidTemplate(
                f"Expected a template with {BLANK} where the class goes, found {template!r}; "
                f"{_EXAMPLE}"
            )


def text_cache_folder() -> Path:
    """Return $TRANSDUCE_CACHE, or `transduce` in the platform's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("transduce", appauthor=False)


def cache_key(identity: Identity, prompts: Sequence[str], templates: Sequence[str]) -> str:
    """Return the name of a cache entry: a hash of all that decides the embeddings."""
    contents = [asdict(identity), list(prompts), list(templates)]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def read_cached(
    key: str, shape: tuple[int, int], cache: Path | None = None
) -> Float32[np.ndarray, "class feature"] | None:
    """Return the kept embeddings, or None: nothing there, or not what was written."""
    try:
        contents = _cached_path(key, cache).read_bytes()
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
    """Write the embeddings whole or not at all, also when two processes do so at once."""
    body = io.BytesIO()
    np.save(body, embeddings, allow_pickle=False)
    path = _cached_path(key, cache)
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


def _cached_path(key: str, cache: Path | None) -> Path:
    return (cache or text_cache_folder()) / "texts" / f"{key}.npy"
