"""`drawn:24`: a dataset drawn for the shapes encoder, which was not trained on its classes."""

import numpy as np
from jaxtyping import Float32

from transduce.benchmark.labeled_features import LabeledFeatures, Split
from transduce.benchmark.synthetic import LOOKS, TEXTURES, UNSEEN, Thing, draw, name_of
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Encoder
from transduce.encoders.prompts import embed_classes
from transduce.errors import InvalidSetting

SPLITS = {"train": 6, "val": 8, "test": 25}  # images of each class
BATCH = 64
SEED = 0


def draw_features(name: str, encoder: Encoder) -> LabeledFeatures:
    """Return features of drawings of the first N unseen pairs, in the `shifted` look."""
    count = name.partition(":")[2]
    if not (count.isdigit() and 2 <= int(count) <= len(UNSEEN)):
        raise InvalidSetting(f"Expected drawn:2 to drawn:{len(UNSEEN)} classes, found {name!r}.")
    pairs = UNSEEN[: int(count)]
    names = ClassNames.of(name_of(pair) for pair in pairs)
    splits = {}
    for number, (split, size) in enumerate(SPLITS.items()):
        labels = np.repeat(np.arange(len(pairs)), size)
        things = [(pairs[label][1], pairs[label][0]) for label in labels]
        embeddings = _embed(encoder, things, np.random.default_rng([SEED, number]))
        splits[split] = Split.of(embeddings, labels, len(pairs))
    return LabeledFeatures(
        name=name,
        encoder=encoder.identity.encoder,
        classes=names.labels,
        class_embeddings=embed_classes(encoder, names),
        splits=splits,
    )


def _embed(
    encoder: Encoder, things: list[tuple[str, str]], generator: np.random.Generator
) -> Float32[np.ndarray, "image feature"]:
    parts = []
    for start in range(0, len(things), BATCH):
        images = [
            draw(
                Thing(shape, color, TEXTURES[generator.integers(len(TEXTURES))]),
                LOOKS["shifted"],
                generator,
            )
            for shape, color in things[start : start + BATCH]
        ]
        pixels = np.stack([encoder.preprocessing(image) for image in images])
        parts.append(encoder.embed_images(pixels))
    return np.concatenate(parts)
