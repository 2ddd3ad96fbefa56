"""Lemma 1 of the paper: q majorises F and touches it, so that MM never goes up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import digamma, gammaln

from transduce.simplex import dirichlet
from transduce.simplex.special import curvature

SIZE = 5
PARAMETERS = arrays(float, SIZE, elements=st.floats(1e-3, 1e3))
MEAN_LOGS = arrays(float, SIZE, elements=st.floats(-20.0, -0.1))


def negative_log_likelihood(alpha, mean_log):
    """F_k of equation 8, for a class of unit mass."""
    return -((alpha - 1) * mean_log).sum() + gammaln(alpha).sum() - gammaln(alpha.sum())


def majorant(alpha, at, mean_log):
    """q of equation 12, the tangent majorant at `at`."""
    step = alpha - at
    bowl = gammaln(at + 1) + digamma(at + 1) * step + 0.5 * curvature(at) * step**2
    line = gammaln(at.sum()) + digamma(at.sum()) * step.sum()
    return (-(alpha - 1) * mean_log - np.log(alpha) + bowl).sum() - line


@given(PARAMETERS, PARAMETERS, MEAN_LOGS)
def test_it_majorises(alpha, at, mean_log):
    above, below = majorant(alpha, at, mean_log), negative_log_likelihood(alpha, mean_log)
    assert above >= below - 1e-9 * (1 + abs(below))


@given(PARAMETERS, MEAN_LOGS)
def test_it_touches(at, mean_log):
    value = negative_log_likelihood(at, mean_log)
    assert abs(majorant(at, at, mean_log) - value) <= 1e-10 * (1 + abs(value))


@given(PARAMETERS, MEAN_LOGS)
def test_a_step_minimizes_it(at, mean_log):
    step = dirichlet.fit(mean_log[None], at[None], solver="mm", steps=1)[0]
    value = majorant(step, at, mean_log)
    for factor in (0.99, 1.01):
        assert value <= majorant(step * factor, at, mean_log) + 1e-9 * (1 + abs(value))


@given(PARAMETERS, MEAN_LOGS, st.sampled_from(["mm", "minka", "fast"]))
def test_no_solver_goes_up(start, mean_log, solver):
    # Means of logarithms of one probability vector at most sum to one when exponentiated.
    mean_log = mean_log - max(0.0, np.log(np.exp(mean_log).sum()))
    before = negative_log_likelihood(start, mean_log)
    alpha = dirichlet.fit(mean_log[None], start[None], solver=solver)[0]
    assert negative_log_likelihood(alpha, mean_log) <= before + 1e-9 * (1 + abs(before))
