"""The transductive rivals answer like the code the paper compared with, label for label."""

import numpy as np
import pytest
from reference_data import SETS, load

from transduce import Task
from transduce.methods.alpha_tim import AlphaTIM
from transduce.methods.bd_cspn import BDCSPN
from transduce.methods.laplacian_shot import LaplacianShot

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

RECORDED = {
    "bdcspn": (BDCSPN(temperature=30.0), 0.995, None),
    "laplacian_shot": (LaplacianShot(weight=0.7, neighbors=2), 0.995, None),
    # A thousand steps a task: a few tasks are enough to tell another algorithm.
    "alpha_tim": (AlphaTIM(alpha=7.0), 0.99, 3),
}


@pytest.mark.parametrize("features", SETS)
@pytest.mark.parametrize("shots", [1, 4])
@pytest.mark.parametrize("recorded", RECORDED)
def test_agrees_with_the_recorded_labels(recorded, shots, features):
    method, mark, most_tasks = RECORDED[recorded]
    data = load(features)
    supports, queries = data.golden[f"fs{shots}_support"], data.golden[f"fs{shots}_query"]
    answers = data.golden[f"fs{shots}/{recorded}/prob/pred"][:most_tasks]
    agreement = []
    for support, query, answer in zip(supports, queries, answers, strict=False):
        task = Task.from_embeddings(
            data.images[query],
            data.classes,
            support=data.images[support],
            support_labels=data.labels[support],
        )
        agreement.append(np.mean(method.predict(task).labels == answer))
    assert np.mean(agreement) >= mark
