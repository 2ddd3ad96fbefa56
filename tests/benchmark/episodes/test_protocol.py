import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.benchmark.episodes.small_features import features
from transduce.benchmark.episodes.protocol import (
    PROTOCOLS,
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    EpisodeProtocol,
    FewShotProtocol,
    ZeroShotProtocol,
    protocol_from_json,
    protocol_to_json,
)
from transduce.benchmark.episodes.rows import of_counts, rounded_counts, until_enough
from transduce.benchmark.episodes.sampler import draw_rows
from transduce.benchmark.run import Run
from transduce.benchmark.suite_files import load_suite
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


@dataclass(frozen=True, kw_only=True)
class LongTailProtocol(EpisodeProtocol):
    """Each class present has half of the images of the one before."""

    name: ClassVar[str] = "long-tail"
    queries: int = 31
    classes_present: int = 5
    shots: int = 0

    def draw(self, random, pools):
        shares = 0.5 ** np.arange(self.classes_present)
        counts = rounded_counts(self.queries * shares / shares.sum())
        return until_enough(lambda: of_counts(random, pools, counts))


def test_a_new_protocol_is_one_class_and_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(PROTOCOLS._entries, LongTailProtocol.name, LongTailProtocol)  # the line
    (tmp_path / "mine.toml").write_text(
        'title = "x"\nnote = ""\nmethods = "first"\n'
        'columns = [{ dataset = "a", encoder = "b" }]\n'
        'tables = [{ key = "t", title = "T", protocol = { name = "long-tail", queries = 15 } }]'
    )
    run = next(load_suite(str(tmp_path / "mine.toml")).cells()).run
    assert run.protocol == LongTailProtocol(queries=15)
    assert Run.from_json(run.to_json()) == run
    data = features()
    drawn = draw_rows(data, LongTailProtocol(), 0, seed=0)
    sizes = np.bincount(data.split("test").labels[drawn.query])
    assert sorted(sizes[sizes > 0]) == [1, 2, 4, 8, 16]
    with pytest.raises(InvalidSetting, match="lower queries to 150"):
        draw_rows(data, LongTailProtocol(queries=151), 0, seed=0)
