"""How new images differ from those of the run they join, in words."""

from types import SimpleNamespace

import numpy as np
import pytest

from transduce.labeling.drift import drift_warnings
from transduce.methods.anchored.drift import Drift

CLASSES = SimpleNamespace(classes=("cat", "dog", "fox", "elk", "hen"))
PAST = SimpleNamespace(images=400.0, far=0.01)


def said(**found):
    drift = Drift(
        **{"appeared": {}, "moved": {}, "far": np.zeros(50, bool), "far_before": 0.01, **found}
    )
    return drift_warnings(CLASSES, PAST, drift, len(drift.far))


def test_nothing_is_said_if_nothing_differs():
    assert said() == []
    assert said(remembered=400, renamed={0: 12, 3: 8}) == []  # one in twenty
    assert said(remembered=1, renamed={0: 1}) == []
    assert said(far=np.arange(50) < 1) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"appeared": {2: 7}}, "far more common than among the 400 images before: fox (7). Check"),
        ({"appeared": {0: 1, 1: 4, 2: 3, 4: 2}}, "dog (4), fox (3), hen (2) and 1 more"),
        ({"moved": {1: 3}}, "unlike those that had the same label before: dog (3)"),
        (
            {"remembered": 400, "renamed": {0: 12, 3: 9}},
            "21 of 400 images from before would get another label than was written, most of them "
            "labeled cat (12), elk (9)",
        ),
        ({"far": np.arange(50) < 5}, "5 of 50 new images (10%) are farther from every class"),
    ],
)
def test_what_differs_is_said(found, words):
    (warning,) = said(**found)
    assert words in warning
