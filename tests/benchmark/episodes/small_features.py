"""A small labeled dataset whose images are told apart by their embeddings."""

import numpy as np

from transduce.benchmark.labeled_features import LabeledFeatures, Split

DIMENSION = 12


def split(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    random = np.random.default_rng(seed)
    labels = random.permutation(labels)
    return Split.of(random.normal(size=(len(labels), DIMENSION)), labels, len(counts))


def features(name="small", test=(30,) * 12, train=(20,) * 12, val=(15,) * 12, encoder="any"):
    n_classes = len(test)
    return LabeledFeatures(
        name=name,
        encoder=encoder,
        classes=tuple(f"class {k}" for k in range(n_classes)),
        class_embeddings=np.random.default_rng(9).normal(size=(n_classes, DIMENSION)),
        splits={"train": split(train, 1), "val": split(val, 2), "test": split(test, 3)},
    )
