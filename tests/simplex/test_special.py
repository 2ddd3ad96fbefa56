"""The kernels' special functions against scipy, over twenty orders of magnitude."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from transduce.simplex.special import curvature, digamma, log_gamma, trigamma

POSITIVE = st.floats(1e-10, 1e10)
NEAR_ZEROS = st.floats(0.5, 3.0)  # log gamma vanishes at 1 and 2, digamma at 1.46


def relative_or_absolute(found, expected):
    return np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)


@given(st.one_of(POSITIVE, NEAR_ZEROS))
def test_log_gamma(x):
    assert relative_or_absolute(log_gamma(x), special.gammaln(x)) < 1e-12


@given(st.one_of(POSITIVE, NEAR_ZEROS))
def test_digamma(x):
    assert relative_or_absolute(digamma(x), special.digamma(x)) < 1e-12


@given(POSITIVE)
def test_trigamma(x):
    expected = special.polygamma(1, x)
    assert abs(trigamma(x) - expected) < 1e-12 * expected


def test_a_dense_sweep():
    x = np.geomspace(1e-10, 1e10, 200_001)
    assert relative_or_absolute(log_gamma(x), special.gammaln(x)).max() < 1e-12
    assert relative_or_absolute(digamma(x), special.digamma(x)).max() < 1e-12
    assert np.abs(trigamma(x) / special.polygamma(1, x) - 1).max() < 1e-12


@pytest.mark.parametrize("t", [1e-9, 1e-3, 0.1, 0.1499, 0.1501, 1.0, 7.5, 300.0])
def test_curvature_is_the_mean_of_trigamma(t):
    # c(t) t^2 / 2 = integral of s phi''(s) from 0 to t: the lemma's quotient, without cancellation.
    expected, _ = integrate.quad(
        lambda s: 2 * s * special.polygamma(1, s * t + 1), 0, 1, epsabs=0, epsrel=1e-13
    )
    assert curvature(t) == pytest.approx(expected, rel=1e-11)


def test_curvature_at_zero():
    assert curvature(1e-300) == pytest.approx(np.pi**2 / 6, rel=1e-14)


def test_shapes_are_kept():
    assert digamma(np.ones((2, 3, 4))).shape == (2, 3, 4)
    assert trigamma(2.0).shape == ()
