"""Products over threads."""

import numpy as np

from transduce.simplex.threads import product, single_thread


def test_products_over_threads_have_the_bits_of_one_thread():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(600, 40)), random.normal(size=(40, 30))
    found = product(left, right)
    np.testing.assert_allclose(found, left @ right, rtol=1e-12)
    with single_thread():
        np.testing.assert_array_equal(found, product(left, right))
