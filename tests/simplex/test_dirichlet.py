"""The Dirichlet density against scipy, and the three solvers against each other."""

import numpy as np
import pytest
from scipy import special, stats

from transduce import InvalidSetting
from transduce.simplex import dirichlet


def mean_log_of(alpha):
    """What infinitely many draws of these Dirichlets would have as their mean logarithm."""
    return special.digamma(alpha) - special.digamma(alpha.sum(-1, keepdims=True))


def test_log_density_is_scipys():
    random = np.random.default_rng(0)
    alpha = random.uniform(0.2, 30.0, (4, 6))
    rows = random.dirichlet(np.ones(6), 5)
    expected = [[stats.dirichlet.logpdf(row, a) for a in alpha] for row in rows]
    assert dirichlet.log_density(np.log(rows), alpha) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("solver", ["fast", "mm", "minka"])
def test_the_optimum_is_found(solver):
    alpha = np.random.default_rng(1).uniform(0.05, 20.0, (7, 12))
    found = dirichlet.fit(
        mean_log_of(alpha), np.ones_like(alpha), solver=solver, steps=20_000, tolerance=1e-24
    )
    assert found == pytest.approx(alpha, rel=1e-5)


def test_fast_answers_as_mm_where_mm_converges():
    alpha = np.random.default_rng(2).uniform(0.05, 5.0, (50, 30))
    mean_log = mean_log_of(alpha)
    start = np.ones_like(alpha)
    assert dirichlet.fit(mean_log, start) == pytest.approx(
        dirichlet.fit(mean_log, start, solver="mm"), rel=1e-4
    )


@pytest.mark.parametrize("n_features", [3, 19, 62, 200])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 1e-3])
def test_fast_stops_where_the_step_limit_stops_mm(n_features, spread):
    """A class of one image, or of images nearly alike: the likelihood has no, or a far, maximum."""
    random = np.random.default_rng(3)
    row = np.log(random.dirichlet(np.ones(n_features)))
    mean_log = np.log(np.exp(row) / np.exp(row).sum())[np.newaxis] - spread
    start = np.ones_like(mean_log)
    truncated = dirichlet.fit(mean_log, start, solver="mm", tolerance=0.0)
    fast = dirichlet.fit(mean_log, start)
    assert fast.sum() == pytest.approx(truncated.sum(), rel=0.05)
    assert fast / fast.sum() == pytest.approx(truncated / truncated.sum(), rel=0.02)


def test_mm_stops_at_its_tolerance():
    alpha = np.random.default_rng(4).uniform(0.5, 5.0, (3, 8))
    start = np.ones_like(alpha)
    early = dirichlet.fit(mean_log_of(alpha), start, solver="mm", tolerance=1e-2)
    late = dirichlet.fit(mean_log_of(alpha), start, solver="mm")
    assert np.abs(early - alpha).max() > 10 * np.abs(late - alpha).max()


def test_the_start_is_left_alone():
    start = np.ones((2, 5))
    dirichlet.fit(mean_log_of(np.full((2, 5), 2.0)), start)
    assert (start == 1.0).all()


def test_no_rows_are_no_work():
    assert dirichlet.fit(np.empty((0, 4)), np.empty((0, 4))).shape == (0, 4)


def test_an_unknown_solver_is_refused():
    with pytest.raises(InvalidSetting, match="fast"):
        dirichlet.fit(np.zeros((1, 2)), np.ones((1, 2)), solver="newton")  # type: ignore[arg-type]


def test_many_threads_answer_as_one():
    from transduce.simplex.threads import single_thread

    mean_log = mean_log_of(np.random.default_rng(5).uniform(0.1, 9.0, (300, 300)))
    start = np.ones_like(mean_log)
    threaded = dirichlet.fit(mean_log, start)
    with single_thread():
        alone = dirichlet.fit(mean_log, start)
    assert (threaded == alone).all()
