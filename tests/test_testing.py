"""`check_method` passes what keeps the contract, and names the promise that is broken."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from transduce.methods.em_dirichlet import HardEMDirichlet
from transduce.methods.method import Support, accept
from transduce.methods.zero_shot import ZeroShot
from transduce.task import Prediction, Space, Task, Trace
from transduce.testing import check_method, contract_checks


@dataclass(frozen=True, kw_only=True)
class Odd:
    """Zero-shot, unless told to misbehave."""

    name: ClassVar[str] = "odd"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    habit: str = ""

    def predict(self, task: Task) -> Prediction:
        accept(self, task)
        probabilities = task.zero_shot.copy()
        if self.habit == "returns its input":
            probabilities = task.zero_shot
        if self.habit == "writes its input":
            task.query[0] = 0.5
        if self.habit == "draws lots":
            probabilities = np.random.dirichlet(np.ones(task.n_classes), task.n_queries)  # noqa: NPY002
        if self.habit == "likes the first query":
            probabilities[0] = 1 / task.n_classes
        if self.habit == "likes the first class":
            probabilities = np.eye(task.n_classes)[np.zeros(task.n_queries, int)]
        if self.habit == "crashes alone" and task.n_queries == 1:
            raise ZeroDivisionError("one query")
        if self.habit == "sums to two":
            probabilities *= 2
        if self.habit == "wants doubles":
            probabilities = probabilities.astype(np.float64)
        return Prediction(probabilities, Trace(objective=(), iterations=0, converged=True))


@pytest.mark.parametrize("method", [ZeroShot, HardEMDirichlet, Odd, lambda: Odd(habit="none")])
def test_passes_what_keeps_the_contract(method):
    check_method(method)


@pytest.mark.parametrize(
    ("habit", "broken"),
    [
        ("returns its input", r"check_inputs_unchanged\[probability\]: Expected a new array"),
        ("writes its input", "check_inputs_unchanged.*read-only"),
        ("draws lots", "check_same_answer_twice"),
        ("likes the first query", "check_query_permutation"),
        ("likes the first class", "check_class_relabeling"),
        ("crashes alone", "check_single_query.*ZeroDivisionError"),
        ("sums to two", "check_distributions"),
        ("wants doubles", "check_single_precision"),
    ],
)
def test_names_the_promise_that_is_broken(habit, broken):
    with pytest.raises(AssertionError, match=broken):
        check_method(lambda: Odd(habit=habit))


@pytest.mark.parametrize(
    ("attributes", "broken"),
    [
        ({"support": "needed"}, "check_support.*Expected other shots to change the answer"),
        ({"support": "optional"}, "check_support.*Expected other shots to change the answer"),
        ({"spaces": ("pixels",)}, "check_attributes: Expected spaces among"),
        ({"inductive": False}, r"check_model\[probability\]: Expected Prediction.model"),
        ({"name": "even"}, "check_attributes: Expected a class called like 'even', found Odd"),
        ({"grid": {"habit": ("a", "a")}}, "check_grid"),
    ],
)
def test_names_the_attribute_that_is_wrong(attributes, broken, monkeypatch):
    for name, value in attributes.items():
        monkeypatch.setattr(Odd, name, value)
    with pytest.raises(AssertionError, match=broken):
        check_method(Odd)


def test_unfrozen_settings_are_a_broken_promise():
    @dataclass(kw_only=True)
    class Soft:
        name: ClassVar[str] = "soft"
        spaces: ClassVar[tuple[Space, ...]] = ("probability",)
        support: ClassVar[Support] = "unused"
        inductive: ClassVar[bool] = True
        grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}
        habit: str = ""
        predict = Odd.predict

    with pytest.raises(AssertionError, match="check_settings_are_frozen: Expected a frozen"):
        check_method(Soft)


def test_checks_can_be_listed_for_a_test_runner():
    names = [name for name, _ in contract_checks(ZeroShot)]
    assert "check_single_query[embedding]" in names
    assert len(names) == len(set(names)) == 4 + 2 * 12
