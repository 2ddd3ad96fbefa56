"""Settings are fields: what they mean, and which values are refused."""

import dataclasses

import numpy as np
import pytest

from transduce import METHODS, InvalidSetting, UnknownName
from transduce.benchmark.synthetic.simulated import simulate
from transduce.methods.mixture import penalty_weight

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


@pytest.mark.parametrize(
    ("n_classes", "penalty", "present", "weight"),
    [
        (1000, None, 5, 200.0),
        (19, None, 5, 3.0),
        (3, None, 5, 1.0),
        (1000, None, 1000, 1.0),
        (1000, None, "all", 1.0),
        (1000, 0.5, 5, 0.5),
        (1000, 0.0, "all", 0.0),
    ],
)
def test_the_weight_of_log_pi(n_classes, penalty, present, weight):
    assert penalty_weight(n_classes, penalty, present) == weight


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": -1.0},
        {"penalty": float("nan")},
        {"classes_present": 0},
        {"classes_present": "some"},
        {"classes_present": 2.5},
        {"max_iter": 0},
        {"matching": "hungarian"},
        {"solver": "newton"},
        {"solver_steps": 0},
    ],
    ids=str,
)
def test_senseless_settings_are_refused_at_once(settings):
    with pytest.raises(InvalidSetting, match="Expected"):
        METHODS["em-dirichlet"](**settings)


def test_unknown_settings_are_refused():
    with pytest.raises(TypeError, match="penalties"):
        METHODS["em-dirichlet"](penalties=3)


def test_an_unknown_method_is_told_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'em-dirichlet'"):
        METHODS["em_dirichlet"]


def test_the_ablation_falls_out_of_the_settings():
    """No penalty and no barrier, each alone and together: four methods, and they differ."""
    task = simulate(n_classes=50, classes_present=4, seed=1).task
    answers = [
        METHODS[name](penalty=penalty).predict(task).labels
        for name in ("hard-em-dirichlet", "em-dirichlet")
        for penalty in (0.0, None)
    ]
    sizes = [len(np.unique(labels)) for labels in answers]
    assert sizes[1] < sizes[0]  # the penalty leaves fewer classes standing
    assert sizes[3] < sizes[2]


@pytest.mark.parametrize("name", [name for name in METHODS if name != "coop"])  # needs a tower
def test_methods_are_values(name):
    method = METHODS[name]
    assert dataclasses.is_dataclass(method)
    assert method() == method()
    assert hash(method()) == hash(method())
