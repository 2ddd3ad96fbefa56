"""Class names to sentences to one unit embedding per class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from transduce.encoders import text_cache
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Encoder
from transduce.errors import InvalidEncoder, InvalidTemplate

BLANK = "{}"
DEFAULT_TEMPLATE = "a photo of a {}."


def sentences(prompts: Sequence[str], template: str) -> list[str]:
    """The template about each class. Only `{}` is replaced; no other brace means anything."""
    _accept([template])
    return [template.replace(BLANK, prompt) for prompt in prompts]


def embed_classes(
    encoder: Encoder,
    classes: ClassNames,
    templates: Sequence[str] = (DEFAULT_TEMPLATE,),
    *,
    cache: Path | None = None,
) -> Float32[np.ndarray, "class feature"]:
    """A unit embedding per class; of several templates, the direction of their mean.

    The answer is kept on disk under (encoder, prompts, templates), in `cache` or the folder
    that `text_cache.folder` tells, and the text tower is not even loaded the next time.
    """
    _accept(templates)
    key = text_cache.key_of(encoder.identity, classes.prompts, templates)
    kept = text_cache.read(key, (len(classes), encoder.identity.dimension), cache)
    if kept is not None:
        return kept
    embeddings = _ensemble(encoder, classes.prompts, templates)
    text_cache.write(key, embeddings, cache)
    return embeddings


def _ensemble(
    encoder: Encoder, prompts: Sequence[str], templates: Sequence[str]
) -> Float32[np.ndarray, "class feature"]:
    every = [sentence for template in templates for sentence in sentences(prompts, template)]
    units = _directions(encoder.embed_texts(every), every)
    by_template = units.reshape(len(templates), len(prompts), -1)
    return _directions(by_template.mean(0), prompts)


def _directions(
    rows: Float32[np.ndarray, "row feature"], sources: Sequence[str]
) -> Float32[np.ndarray, "row feature"]:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(wrong):
        raise InvalidEncoder(
            f"Expected an embedding with a direction for each class, found length "
            f"{lengths[wrong[0], 0]} for {sources[wrong[0]]!r}; the text tower is broken, or its "
            "templates cancel out."
        )
    directions: Float32[np.ndarray, "row feature"] = (rows / lengths).astype(np.float32)
    return directions


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
