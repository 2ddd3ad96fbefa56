"""The steps of the automatic method."""

import numpy as np

from transduce.labeling.automatic import estimate_presence


def test_presence_counts_the_classes_that_are_there():
    random = np.random.default_rng(0)
    truth = random.choice([2, 5, 6], 200)
    logits = 3.0 * np.eye(20)[truth] + random.normal(size=(200, 20)) * 0.7
    zero_shot = np.exp(logits * 0.3)
    zero_shot /= zero_shot.sum(1, keepdims=True)
    presence = estimate_presence(zero_shot, 30.0)
    assert presence.classes.tolist() == [2, 5, 6]
    assert 0.0 < presence.expected_error < 1.0
