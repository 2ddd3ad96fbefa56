"""A planted Dirichlet is recovered from its draws, and from its exact mean logarithms."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import digamma

from transduce.simplex import dirichlet

PLANTED = arrays(float, st.integers(2, 40), elements=st.floats(0.05, 50.0))


@given(PLANTED)
def test_from_exact_statistics(alpha):
    mean_log = digamma(alpha) - digamma(alpha.sum())
    found = dirichlet.fit(mean_log[None], np.ones((1, alpha.size)), steps=100_000)[0]
    assert np.abs(found / alpha - 1).max() < 1e-4


@settings(max_examples=10)
@given(arrays(float, 6, elements=st.floats(0.3, 20.0)), st.integers(0, 1000))
def test_from_draws(alpha, seed):
    draws = np.random.default_rng(seed).dirichlet(alpha, 20_000)
    mean_log = np.log(np.maximum(draws, 1e-300)).mean(0)
    found = dirichlet.fit(mean_log[None], np.ones((1, 6)))[0]
    assert np.abs(found / alpha - 1).max() < 0.1
