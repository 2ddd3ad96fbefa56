import numpy as np
import pytest

from transduce.errors import InvalidStore, InvalidTask
from transduce.validation import unit_rows


def test_directions_of_tiny_and_huge_vectors():
    rows = np.array([[3e-40, 4e-40], [3e300, 4e300]])
    np.testing.assert_allclose(unit_rows("rows", rows), [[0.6, 0.8]] * 2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.0])
def test_rows_without_a_direction_are_named(wrong):
    rows = np.ones((9, 3), np.float32)
    rows[2:] = wrong
    with pytest.raises(InvalidTask, match="in rows 2, 3, 4, 5, 6 and 2 more"):
        unit_rows("rows", rows)
    names = [f"{row}.jpg" for row in range(9)]
    with pytest.raises(InvalidStore, match=r"in 2\.jpg, 3\.jpg, 4\.jpg, .* and 2 more; make"):
        unit_rows("rows", rows, error=InvalidStore, row_name=names.__getitem__)


def test_other_refusals_keep_the_error_of_the_caller():
    with pytest.raises(InvalidStore, match="2 dimensions"):
        unit_rows("rows", np.ones(3), error=InvalidStore, row_name=str)
