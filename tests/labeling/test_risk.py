import numpy as np
import pytest
from scipy import stats

from transduce.labeling import risk


def test_the_hypergeometric_is_scipys():
    total, marked, drawn = 40, 13, 17
    found = np.arange(18)
    ours = risk.hypergeometric_cdf(
        found, np.full(18, total), np.full(18, marked), np.full(18, drawn)
    )
    np.testing.assert_allclose(ours, stats.hypergeom.cdf(found, total, marked, drawn), atol=1e-12)


def test_the_levels_of_all_draws_add_up():
    levels = [risk.level_of(number, 0.95) for number in range(1, 60)]
    assert sum(levels) == pytest.approx(0.05)
    assert levels == sorted(levels, reverse=True)


def test_a_prefix_passes_only_with_few_wrong():
    assert risk.allowed_wrong(10_000, 58, 0.05, 0.05) == -1
    assert risk.allowed_wrong(10_000, 59, 0.05, 0.05) == 0
    assert risk.allowed_wrong(10_000, 93, 0.05, 0.05) == 1


def test_what_is_known_counts_without_a_test():
    sizes = np.array([100])
    nothing = np.array([0])
    p = risk.prefix_p_values(
        sizes, nothing, nothing, 0.05, known=np.array([96]), known_wrong=nothing
    )
    assert p == [0.0]  # four unknown labels cannot break a limit of five
    p = risk.prefix_p_values(
        sizes, nothing, nothing, 0.05, known=np.array([96]), known_wrong=np.array([6])
    )
    assert p == [1.0]


def test_counting_is_clopper_and_pearsons():
    for wrong in (0, 3, 50):
        expected = stats.binomtest(wrong, 50).proportion_ci(0.95, "exact")
        assert risk.counting_interval(wrong, 50, 0.95) == pytest.approx(tuple(expected))


def test_shifted_doubts_add_up():
    doubt = np.random.default_rng(0).beta(0.5, 3, 100)
    for total in (0.0, 1.0, 20.0, 99.0, 100.0):
        assert risk.shifted(doubt, total).sum() == pytest.approx(total, abs=1e-6)
