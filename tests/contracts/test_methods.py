"""What every method of the catalogue promises: a new one is checked by being listed."""

import inspect
import re
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest
from small_tasks import build

from transduce import METHODS
from transduce.testing import CLASS_CHECKS, TASK_CHECKS

CASES = [(name, space) for name, method in METHODS.items() for space in method.spaces]
every_method = pytest.mark.parametrize("name", METHODS)


@every_method
def test_is_spelled_the_same_everywhere(name):
    method = METHODS[name]
    assert method.name == name
    # A file holds one method or a twin pair, which then shares its name.
    assert Path(inspect.getfile(method)).stem.replace("_", "-") in name


@every_method
def test_file_opens_with_a_citation(name):
    assert re.search(r"\b(19|20)\d\d\b", inspect.getmodule(METHODS[name]).__doc__)


@every_method
def test_class_names_every_setting_in_its_parameter_list(name):
    documented = inspect.getdoc(METHODS[name])
    for field in fields(METHODS[name]):
        assert re.search(rf"^{field.name} : ", documented, re.MULTILINE), field.name
    assert ">>> " in documented


@pytest.mark.parametrize("check", CLASS_CHECKS, ids=lambda check: check.__name__)
@every_method
def test_class_keeps(name, check):
    check(partial(build, name))


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    ("name", "space"),
    [(name, space) for name, method in METHODS.items() for space in method.spaces],
)
def test_answer_keeps(name, space, check):
    check(partial(build, name), space)
