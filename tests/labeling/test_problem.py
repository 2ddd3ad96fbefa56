"""The class probabilities of a solution."""

import numpy as np

from transduce.labeling.problem import entropy_share


def test_entropy_is_a_share():
    rows = np.array([[1, 0, 0, 0], [0.25] * 4], np.float32)
    np.testing.assert_allclose(entropy_share(rows), [0, 1], atol=1e-6)
