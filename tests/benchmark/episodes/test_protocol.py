import json

import pytest

from transduce.benchmark.episodes.protocol import (
    PROTOCOLS,
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    FewShotProtocol,
    ZeroShotProtocol,
    protocol_from_json,
    protocol_to_json,
)
from transduce.errors import InvalidSetting, UnknownName


def test_the_papers_settings_are_the_defaults():
    assert protocol_to_json(ZeroShotProtocol()) == {
        "name": "zero-shot", "queries": 75, "fewest": 3, "most": 10,
    }  # fmt: skip
    assert protocol_to_json(FewShotProtocol()) == {
        "name": "few-shot", "shots": 4, "queries": 75, "classes_present": 5,
    }  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_a_value(name):
    protocol = PROTOCOLS[name]()
    assert protocol.name == name
    assert hash(protocol) == hash(PROTOCOLS[name]())
    assert protocol_from_json(json.loads(json.dumps(protocol_to_json(protocol)))) == protocol


def test_settings_survive_json():
    protocol = DirichletProtocol(queries=40, concentration=0.5, shots=2)
    assert protocol_from_json(protocol_to_json(protocol)) == protocol


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: ZeroShotProtocol(fewest=8, most=4), "8 > 4"),
        (lambda: ZeroShotProtocol(queries=0), "queries.*from 1, found 0"),
        (lambda: ZeroShotProtocol(fewest=0), "fewest.*found 0"),
        (lambda: FewShotProtocol(shots=0), "shots.*from 1, found 0"),
        (lambda: FewShotProtocol(shots=2.5), "whole number from 1, found 2.5"),
        (lambda: BalancedProtocol(queries=4, classes_present=5), "4 queries of 5 classes"),
        (lambda: DirichletProtocol(concentration=0.0), "concentration, found 0.0"),
        (lambda: DirichletProtocol(concentration=float("nan")), "concentration, found nan"),
        (lambda: AllClassesProtocol(queries=-1), "found -1"),
        (lambda: AllClassesProtocol(shots=True), "found True"),
    ],
)
def test_impossible_settings_are_refused(build, told):
    with pytest.raises(InvalidSetting, match=told):
        build()


def test_unknown_names_and_settings_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'few-shot'"):
        protocol_from_json({"name": "fewshot"})
    with pytest.raises(InvalidSetting, match=r"classes_present in protocol few-shot, found 'ways'"):
        protocol_from_json({"name": "few-shot", "ways": 5})
