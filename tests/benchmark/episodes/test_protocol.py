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
from transduce.benchmark.episodes.regimes import (
    FewShotRegimeProtocol,
    PerClassProtocol,
    RegimeProtocol,
    SkewedProtocol,
)
from transduce.benchmark.episodes.rows import of_counts, rounded_counts, until_enough
from transduce.benchmark.episodes.sampler import draw_rows, sample
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


COUNTS = (30, 0, 5, 2, 12, 30, 30, 30, 30, 30, 30, 30)  # class 1 is a name without images


def labels_of(protocol, index=0, **splits):
    data = features(test=COUNTS, **splits)
    drawn = draw_rows(data, protocol, index, seed=0)
    assert len(set(drawn.query.tolist())) == len(drawn.query)
    return data.split("test").labels[drawn.query], drawn, data


@pytest.mark.parametrize("index", range(8))
def test_a_regime_takes_as_many_images_as_its_classes_have(index):
    labels, _, _ = labels_of(RegimeProtocol(queries=40, fewest=1, most=3), index)
    classes = np.unique(labels)
    assert 1 not in classes
    assert 1 <= len(classes) <= 3
    assert len(labels) <= 40
    if len(labels) < 40:
        assert len(labels) == sum(COUNTS[k] for k in classes)
    every, _, _ = labels_of(RegimeProtocol(queries=1000, fewest=11, most=99), index)
    assert len(every) == sum(COUNTS)


def test_a_regime_of_more_classes_than_have_images_is_refused():
    with pytest.raises(InvalidSetting, match=r"at least 12 classes with images .* found 11"):
        labels_of(RegimeProtocol(fewest=12, most=30))


def test_a_long_tail_is_skewed_and_no_larger_than_the_split():
    labels, _, _ = labels_of(SkewedProtocol(queries=60))
    assert 0 < len(labels) <= 60
    few, _, _ = labels_of(SkewedProtocol(queries=10_000, concentration=1e4))
    assert len(few) < sum(COUNTS)  # an even share of 259 is more than the small classes have
    assert np.bincount(few, minlength=12)[3] == 2


def test_images_of_every_class_and_all_images():
    labels, _, _ = labels_of(PerClassProtocol(images=4))
    assert np.bincount(labels, minlength=12).tolist() == [min(4, count) for count in COUNTS]
    whole, _, _ = labels_of(PerClassProtocol())
    assert np.bincount(whole, minlength=12).tolist() == list(COUNTS)
    assert PerClassProtocol().one_draw
    assert not PerClassProtocol(images=2).one_draw
    assert PerClassProtocol().with_at_most(35) == PerClassProtocol()


def test_one_task_is_enough_where_there_is_only_one():
    settings = {"dataset": "small", "encoder": "any", "method": "zero-shot", "tasks": 1}
    assert Run(protocol=PerClassProtocol(), **settings).tasks == 1
    with pytest.raises(InvalidSetting, match="at least 2 tasks"):
        Run(protocol=PerClassProtocol(images=2), **settings)


def test_shots_of_a_share_of_the_classes():
    protocol = FewShotRegimeProtocol(shots=3, queries=50, share=1 / 3)
    labels, drawn, data = labels_of(protocol)
    shots = np.bincount(data.split("train").labels[drawn.support], minlength=12)
    assert sorted(shots)[-4:] == [3] * 4
    assert shots.sum() == 12
    assert len(labels) == 50
    assert sample(data, protocol, 0, seed=0).task.partial_support
    five, _, _ = labels_of(FewShotRegimeProtocol(classes_present=5, queries=1000))
    assert len(np.unique(five)) == 5


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RegimeProtocol(fewest=3, most=2), "3 > 2"),
        (lambda: SkewedProtocol(concentration=-1.0), "concentration, found -1.0"),
        (lambda: PerClassProtocol(images=0), "images.*found 0"),
        (lambda: FewShotRegimeProtocol(share=0.0), "share above 0"),
    ],
)
def test_impossible_regimes_are_refused(build, message):
    with pytest.raises(InvalidSetting, match=message):
        build()
