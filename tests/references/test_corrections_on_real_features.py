"""On real images: correcting the labels in doubt helps the labels that nobody looked at."""

import numpy as np
import pytest
from reference_data import load

from transduce import Anchored, Task


@pytest.mark.parametrize(("corrections", "gain"), [(10, 1), (30, 4)])
def test_corrections_help_the_others(corrections, gain):
    data = load("whurs19_RN50")
    random = np.random.default_rng(0)
    gains = []
    for _ in range(3):
        rows = random.permutation(len(data.labels))[:300]
        images, truth = data.images[rows], data.labels[rows]
        first = Anchored().predict(Task.from_embeddings(images, data.classes, space="embedding"))
        doubtful = np.argsort(first.probabilities.max(1))[:corrections]
        others = np.setdiff1d(np.arange(300), doubtful)
        task = Task.from_embeddings(
            images[others],
            data.classes,
            support=images[doubtful],
            support_labels=truth[doubtful],
            partial_support=True,
            space="embedding",
        )
        right = [
            labels == truth[others]
            for labels in (first.labels[others], Anchored().predict(task).labels)
        ]
        gains.append(int(right[1].sum()) - int(right[0].sum()))
    assert min(gains) >= 0
    assert sum(gains) >= gain
