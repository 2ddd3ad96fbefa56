"""How well images of no class are found, with some classes taken off the list."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from benchmarks.record import Row
from benchmarks.trust_sets import OWN_TEMPERATURE
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.labeling.problem import names_entropy
from transduce.labeling.table import strangeness
from transduce.simplex.probabilities import zero_shot_probabilities
from transduce.validation import unit_rows

REMOVED = 8  # one of so many classes
REPEATS = 20
MEASURES = ("distance", "doubt", "entropy", "distance and doubt", "distance and entropy")


def measure(features: LabeledFeatures) -> Row:
    """The AUROC of distance, doubt and entropy of zero-shot, and `strangeness`: means of draws."""
    split = features.splits["all"]
    images = unit_rows("images", split.embeddings.astype(np.float32))
    texts = unit_rows("classes", features.class_embeddings.astype(np.float32))
    present = np.unique(split.labels)
    found = []
    for seed in range(REPEATS):
        random = np.random.default_rng(seed)
        gone = random.choice(present, max(1, len(present) // REMOVED), replace=False)
        kept = np.delete(texts, gone, axis=0)
        distance = 1.0 - (images @ kept.T).max(1)
        undecided = names_entropy(OWN_TEMPERATURE * (images @ kept.T))
        doubt = 1.0 - zero_shot_probabilities(images, kept, OWN_TEMPERATURE).max(1)
        outside = np.isin(split.labels, gone)
        # Any two of them make one in the same way: the sum of both, standardized.
        together = [strangeness(distance, other) for other in (doubt, undecided)]
        measures = (distance, doubt, undecided, *together)
        found.append([100 * _auroc(values, outside) for values in measures])
    means = np.mean(found, axis=0).round(2).tolist()
    return dict(zip(MEASURES, means, strict=True))


def _auroc(values: Float[np.ndarray, " image"], positive: Bool[np.ndarray, " image"]) -> float:
    ranks = rankdata(values)
    count = int(positive.sum())
    area = ranks[positive].sum() - count * (count + 1) / 2
    return float(area / (count * (len(values) - count)))
