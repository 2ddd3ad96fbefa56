import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.benchmark.episodes.small_features import features
from transduce.benchmark.episodes import (
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    FewShotProtocol,
    ZeroShotProtocol,
    draw_rows,
    sample,
)
from transduce.errors import InvalidSetting, UnknownName

ROOT = Path(__file__).parents[3]
ALL = [
    ZeroShotProtocol(),
    FewShotProtocol(),
    BalancedProtocol(queries=23, shots=1),
    DirichletProtocol(queries=40),
    AllClassesProtocol(queries=100, shots=2),
]
each_protocol = pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)


def labels_of(drawn, data, split="test"):
    return data.split(split).labels[drawn.query]


@each_protocol
def test_an_episode_is_what_the_protocol_says(protocol):
    data = features()
    for index in range(5):
        drawn = draw_rows(data, protocol, index, seed=0)
        assert len(drawn.query) == protocol.queries == len(set(drawn.query))
        shots = Counter(data.split("train").labels[drawn.support])
        assert len(set(drawn.support)) == len(drawn.support)
        expected = dict.fromkeys(range(12), protocol.shots) if protocol.shots else {}
        assert shots == expected


@each_protocol
def test_the_task_holds_the_rows_drawn(protocol):
    data = features()
    drawn = draw_rows(data, protocol, 3, seed=5)
    episode = sample(data, protocol, 3, seed=5, space="embedding")
    rows = data.split("test").embeddings[drawn.query]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(episode.task.query, unit, rtol=1e-5)
    np.testing.assert_array_equal(episode.labels, data.split("test").labels[drawn.query])
    if protocol.shots:
        support_labels = data.split("train").labels[drawn.support]
        np.testing.assert_array_equal(episode.task.support_labels, support_labels)


@each_protocol
def test_both_spaces_hold_the_same_images(protocol):
    data = features()
    one = sample(data, protocol, 2, seed=1, space="probability", temperature=50.0)
    other = sample(data, protocol, 2, seed=1, space="embedding", temperature=50.0)
    assert (one.task.space, other.task.space) == ("probability", "embedding")
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.task.zero_shot, other.task.zero_shot)
    assert one.task.temperature == 50.0


def test_an_episode_depends_on_its_seed_dataset_protocol_and_number_only():
    def rows(data, protocol, index, seed):
        return tuple(draw_rows(data, protocol, index, seed=seed).query)

    zero_shot = ZeroShotProtocol()
    told = rows(features(), zero_shot, 4, 0)
    assert rows(features(encoder="another"), zero_shot, 4, 0) == told
    for index in range(4):  # earlier draws leave no trace
        rows(features(), zero_shot, index, 0)
    assert rows(features(), zero_shot, 4, 0) == told
    others = {
        rows(features(), zero_shot, 5, 0),
        rows(features(), zero_shot, 4, 1),
        rows(features(name="another"), zero_shot, 4, 0),
        rows(features(), ZeroShotProtocol(most=9), 4, 0),
    }
    assert len(others | {told}) == 5


def test_an_episode_is_the_same_in_another_process():
    program = (
        "from tests.benchmark.episodes.small_features import features;"
        "from transduce.benchmark.episodes import *;"
        "print(draw_rows(features(), FewShotProtocol(), 7, seed=3).query.tolist())"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    drawn = draw_rows(features(), FewShotProtocol(), 7, seed=3)
    assert told.stdout.strip() == str(drawn.query.tolist())


def test_the_draw_is_pinned():
    # A change of these numbers changes every published result: it must be meant.
    drawn = draw_rows(features(), FewShotProtocol(shots=1, queries=5), 0, seed=0)
    assert drawn.query.tolist() == [67, 113, 302, 240, 112]
    assert drawn.support.tolist() == [225, 108, 223, 232, 124, 131, 17, 27, 156, 3, 103, 171]


# Of 20 episodes each with shots of another split, and of the same.
PINNED = {
    ZeroShotProtocol(): "c9ddb1f07dffc2ad",
    ZeroShotProtocol(queries=40, fewest=2, most=12): "ac53a815312690a6",
    FewShotProtocol(): "f69b63203f0fb735",
    FewShotProtocol(shots=1, queries=20, classes_present=2): "a00c2eda98e35e7d",
    BalancedProtocol(queries=23, shots=1): "93f472b13ef7ae80",
    BalancedProtocol(queries=40, classes_present=7): "e8f768baf709227d",
    DirichletProtocol(queries=40): "262063f629e8251f",
    DirichletProtocol(queries=30, concentration=0.3, shots=2): "f658aa974cd383f2",
    AllClassesProtocol(queries=100, shots=2): "249117ac9d9215a5",
    AllClassesProtocol(): "176b7c1293098dac",
}


@pytest.mark.parametrize("protocol", PINNED, ids=str)
def test_the_draws_of_every_protocol_are_pinned(protocol):
    data = features(test=(30, 25, 20, 18, 16, 14, 12, 10, 9, 8, 7, 6))
    rows = hashlib.sha256()
    for split in ("train", "test"):
        for index in range(20):
            drawn = draw_rows(data, protocol, index, seed=3, support_split=split)
            rows.update(drawn.query.astype("<i8").tobytes())
            rows.update(drawn.support.astype("<i8").tobytes())
    assert rows.hexdigest()[:16] == PINNED[protocol]


def test_zero_shot_has_three_to_ten_classes_uniformly():
    data = features(test=(200,) * 12)
    protocol = ZeroShotProtocol()
    found = Counter(
        len(set(labels_of(draw_rows(data, protocol, index, seed=0), data))) for index in range(800)
    )
    assert set(found) == set(range(3, 11))
    # 100 each are expected, with a standard deviation of 9.4.
    assert all(60 < count < 140 for count in found.values())


def test_classes_are_drawn_again_while_their_pool_is_too_small():
    # Only the two large classes together hold 50; nine in ten draws of two classes do not.
    data = features(test=(25, 25) + (2,) * 10)
    protocol = FewShotProtocol(shots=1, queries=50, classes_present=2)
    for index in range(20):
        assert set(labels_of(draw_rows(data, protocol, index, seed=0), data)) == {0, 1}


def test_a_number_of_classes_that_cannot_fill_the_query_is_left_out():
    data = features(test=(10,) * 12)
    for index in range(30):
        found = labels_of(draw_rows(data, ZeroShotProtocol(), index, seed=0), data)
        assert len(set(found)) >= 8  # 3 to 7 classes hold 30 to 70 images, not 75


def test_balanced_is_balanced():
    data = features()
    for index in range(10):
        drawn = draw_rows(data, BalancedProtocol(queries=23, classes_present=5), index, seed=0)
        assert sorted(Counter(labels_of(drawn, data)).values()) == [4, 4, 5, 5, 5]


def test_a_small_concentration_unbalances():
    data = features(test=(80,) * 12)

    def largest(concentration):
        protocol = DirichletProtocol(concentration=concentration)
        drawn = (labels_of(draw_rows(data, protocol, index, seed=0), data) for index in range(100))
        return np.mean([max(Counter(labels).values()) for labels in drawn])

    assert largest(1000.0) < 20 < largest(2.0) < largest(0.2)


def test_all_classes_are_all_classes():
    data = features(test=(3,) * 11 + (400,))
    whole = draw_rows(data, AllClassesProtocol(), 0, seed=0)
    assert sorted(whole.query) == list(range(433))
    part = draw_rows(data, AllClassesProtocol(queries=12), 0, seed=0)
    assert sorted(labels_of(part, data)) == list(range(12))


@each_protocol
def test_shots_and_queries_of_one_split_do_not_overlap(protocol):
    data = features()
    for index in range(20):
        drawn = draw_rows(data, protocol, index, seed=0, query_split="test", support_split="test")
        assert not set(drawn.query) & set(drawn.support)
        assert len(drawn.query) == protocol.queries


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        (ZeroShotProtocol(most=13), "at least 13 classes .* found 12; lower most to 12"),
        (FewShotProtocol(classes_present=13), "found 12; lower classes_present"),
        (FewShotProtocol(queries=151), "151 images in 5 classes of the test split of small, found "
         "150 in its 5 largest; lower queries to 150"),
        (FewShotProtocol(shots=21), "21 shots of each of 12 classes in the train split.*20 of"),
        (BalancedProtocol(queries=155), "155 / 5 = 31 images each, found 0 with 31"),
        (DirichletProtocol(queries=151), "found 150"),
        (AllClassesProtocol(queries=11), r"12 \(one of each class\) to 360 queries .* found 11"),
        (AllClassesProtocol(queries=361), "to 360 queries .* found 361"),
    ],
)  # fmt: skip
def test_what_a_dataset_cannot_meet_is_refused_with_the_numbers(protocol, told):
    with pytest.raises(InvalidSetting, match=told):
        draw_rows(features(), protocol, 0, seed=0)


def test_a_split_shared_by_shots_and_queries_is_counted_once():
    with pytest.raises(InvalidSetting, match="found 50 in its 5 largest"):
        draw_rows(
            features(), FewShotProtocol(shots=10, queries=75), 0, seed=0,
            query_split="train", support_split="train",
        )  # fmt: skip


def test_what_hardly_ever_fits_is_given_up(monkeypatch):
    monkeypatch.setattr("transduce.benchmark.episodes.rows.MOST_REDRAWS", 50)
    data = features(test=(40, 40) + (1,) * 98, train=(1,) * 100, val=(1,) * 100)
    with pytest.raises(InvalidSetting, match="too small in each of 50 draws"):
        draw_rows(data, FewShotProtocol(shots=1, queries=80, classes_present=2), 0, seed=0)


def test_a_class_without_shots_is_told():
    data = features(train=(20,) * 11 + (0,))
    with pytest.raises(InvalidSetting, match="0 of 'class 11'; choose another split"):
        draw_rows(data, FewShotProtocol(), 0, seed=0)


def test_bad_places_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'test'"):
        draw_rows(features(), ZeroShotProtocol(), 0, seed=0, query_split="tests")
    with pytest.raises(InvalidSetting, match="from 0, found -1"):
        draw_rows(features(), ZeroShotProtocol(), -1, seed=0)
    gap = features(test=(30,) * 11 + (0,))
    with pytest.raises(InvalidSetting, match="found none of 1, such as number 11"):
        draw_rows(gap, AllClassesProtocol(), 0, seed=0)
