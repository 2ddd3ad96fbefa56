import numpy as np
import pytest
from rival_tasks import FEW, SMALL, accuracy, clip_like, text_guess

from transduce import ConvergenceWarning, InvalidSetting, PriorShift, ZeroShot


@pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")
@pytest.mark.parametrize("steps", [1, 3])
def test_steps_are_those_of_em(steps):
    task, _ = clip_like(**SMALL)
    guess = text_guess(task)
    proportions = [1 / 4] * 4
    for _ in range(steps):
        answer = [
            [y * p / sum(a * b for a, b in zip(row, proportions, strict=True))
             for y, p in zip(row, proportions, strict=True)]
            for row in guess
        ]  # fmt: skip
        proportions = [sum(row[k] for row in answer) / len(answer) for k in range(4)]
    prediction = PriorShift(max_iter=steps).predict(task)
    np.testing.assert_allclose(prediction.model.proportions, proportions, atol=1e-12)
    likelihood = sum(
        np.log(sum(p * y for p, y in zip(proportions, row, strict=True))) for row in guess
    )
    assert prediction.trace.objective[-1] == pytest.approx(-likelihood)


def test_objective_never_increases():
    task, _ = clip_like(**FEW)
    objective = PriorShift(tolerance=1.0).predict(task).trace.objective
    assert len(objective) == 50
    assert (np.diff(objective) <= 1e-9).all()


def test_gains_where_few_classes_are_present_and_loses_where_all_are():
    method = PriorShift(tolerance=1.0)
    assert accuracy(method, **FEW) > accuracy(ZeroShot(), **FEW) + 0.05
    assert accuracy(method) < accuracy(ZeroShot()) - 0.1


def test_unsettled_proportions_are_told():
    task, _ = clip_like(**FEW)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        PriorShift(max_iter=1, tolerance=0.0).predict(task)


@pytest.mark.parametrize(
    ("setting", "value"), [("text_scale", 0.0), ("max_iter", 0), ("tolerance", -1.0)]
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        PriorShift(**{setting: value})
