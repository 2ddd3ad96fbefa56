"""Class embeddings: names to sentences to a unit vector per class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from transduce import validation
from transduce.encoders import text_cache
from transduce.encoders.class_names import ClassNames, alternatives, class_names_from
from transduce.encoders.encoder import DEFAULT_TEMPLATE as DEFAULT_TEMPLATE
from transduce.encoders.encoder import Encoder
from transduce.errors import InvalidEncoder, InvalidTemplate

BLANK = "{}"


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
    `text_cache.folder()`, and the text tower is not even loaded the next time.

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
    key = text_cache.key_of(encoder.identity, classes.prompts, templates)
    kept = text_cache.read_cached(key, (len(classes), encoder.identity.dimension), cache)
    if kept is not None:
        return kept
    embeddings = _ensemble(encoder, classes.prompts, templates)
    text_cache.write_cached(key, embeddings, cache)
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


_EXAMPLE = f'write one such as "{DEFAULT_TEMPLATE}".'
