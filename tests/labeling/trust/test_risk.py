import numpy as np
import pytest
from scipy import stats

from transduce.labeling.trust import risk


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


def population(share=0.1, images=600, seed=0):
    random = np.random.default_rng(seed)
    doubt = np.sort(random.beta(0.4, 0.4 / share, images))
    return doubt, random.uniform(size=images) < doubt


def test_certified_labels_break_the_limit_as_rarely_as_asked():
    """400 audits: the limit is broken in at most 10 %, seen in at most 15 %."""
    doubt, wrong = population()
    share_wrong = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    random, broken, sizes = np.random.default_rng(1), 0, []
    sequence = risk.prefix_sizes(600)
    first = risk.first_prefix(sequence, np.cumsum(doubt)[sequence - 1], 100, 0.08, 0.1)
    for _ in range(400):
        drawn = random.choice(len(doubt), 100, replace=False)
        sample = risk.AuditSample(drawn=drawn, wrong=wrong[drawn])
        tests, _ = risk.prefix_tests(doubt, sample, 0.08, 0.1, first)
        size = max((test.size for test in tests if test.passed), default=0)
        broken += size > 0 and share_wrong[size - 1] > 0.08
        sizes.append(size)
    assert broken <= 60
    assert np.mean(sizes) > 150


@pytest.mark.parametrize("informed", [True, False])
def test_the_interval_holds_as_often_as_asked(informed):
    """Also where the doubts say nothing; 400 audits at 90 %, seen in at least 85 %."""
    doubt, wrong = population()
    random = np.random.default_rng(2)
    believed = doubt if informed else random.permutation(doubt)
    kept, width, counting = 0, [], []
    for _ in range(400):
        drawn = random.choice(len(doubt), 100, replace=False)
        sample = risk.AuditSample(drawn=drawn, wrong=wrong[drawn])
        share, (low, high) = risk.wrong_share(believed, sample, 0.9)
        assert low <= share <= high
        kept += low <= wrong.mean() <= high
        width.append(high - low)
        counting.append(np.diff(risk.counting_interval(int(wrong[drawn].sum()), 100, 0.9)))
    assert kept >= 340
    assert np.mean(width) < np.mean(counting) or not informed


def test_what_was_known_before_is_left_out_of_the_chance():
    doubt, wrong = population(images=200)
    known = np.arange(0, 200, 2)
    drawn = np.arange(1, 200, 2)
    sample = risk.AuditSample(
        drawn=drawn, wrong=wrong[drawn], known=known, known_wrong=wrong[known]
    )
    share, interval = risk.wrong_share(doubt, sample, 0.95)
    assert (share, *interval) == pytest.approx((wrong.mean(),) * 3)


def test_a_census_certifies_the_largest_part_that_holds():
    """Small prefixes may fail: all labels are known, so none is a matter of luck."""
    doubt = np.linspace(0.0, 0.5, 100)
    wrong = np.zeros(100, bool)
    wrong[[0, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]] = True
    sample = risk.AuditSample(drawn=np.arange(100), wrong=wrong)
    tests, first = risk.prefix_tests(doubt, sample, 0.05, 0.04)
    assert first == 0
    passed = [test.size for test in tests if test.passed]
    assert max(passed) == 92  # of which three are wrong
    assert min(passed) == 20
