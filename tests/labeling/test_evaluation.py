"""Figures against the truth."""

import numpy as np
import pytest
from scipy import stats

from transduce.labeling.evaluation import mcnemar, wilson


@pytest.mark.parametrize(("right", "of"), [(0, 10), (10, 10), (71, 100)])
def test_wilson_is_scipys(right, of):
    wanted = stats.binomtest(right, of).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(right, of), wanted, atol=1e-6)


def test_mcnemar():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(8, 2) == pytest.approx(stats.binomtest(8, 10).pvalue)
