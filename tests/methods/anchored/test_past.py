"""Images that come later: what joins, what does not depend on the order, and what is said."""

from dataclasses import fields, replace

import numpy as np
import pytest

from transduce import Anchored, InvalidSetting, Task
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.memory import REMEMBERED, Memory
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.anchored.past import Past

METHOD = Anchored(text_scale=10)
SUMS = replace(METHOD, remembered=0)
SOME = replace(METHOD, remembered=50)
CLASSES = np.eye(24)


def images_of(truth, seed=0, noise=0.3):
    random = np.random.default_rng(seed)
    looks = np.random.default_rng(99).normal(0, 0.15, CLASSES.shape)  # what names do not say
    return (CLASSES + looks)[truth] + random.normal(0, noise, (len(truth), 24))


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(1).integers(0, 6, 300)


@pytest.fixture(scope="module")
def images(truth):
    return images_of(truth)


def model_of(images, method=METHOD, **options):
    task = Task.from_embeddings(images, CLASSES, space="embedding", **options)
    return method.predict(task).model


def unit_of(images):
    return (images / np.linalg.norm(images, axis=1, keepdims=True)).astype(np.float32)


def rest_of(images, past):
    """The images that a past has as sums, about its middle."""
    unit = unit_of(images)
    return unit[past.memory.find(unit) < 0] - past.middle


def in_order(memory: Memory) -> Memory:
    return memory.take(np.lexsort(memory.images.T))


def assert_same(one: Past, two: Past):
    for name, array in in_order(one.memory).arrays().items():
        np.testing.assert_array_equal(array, in_order(two.memory).arrays()[name], err_msg=name)
    for field in fields(Past):
        if field.name != "memory":
            a, b = getattr(one, field.name), getattr(two, field.name)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=field.name)


@pytest.mark.parametrize("method", [SUMS, SOME, METHOD])
def test_pasts_add_up_in_any_order(images, method):
    parts = [model_of(images[rows], method).past for rows in np.split(np.arange(300), 3)]
    one = parts[0] + parts[1] + parts[2]
    other = parts[2] + (parts[0] + parts[1])
    assert_same(one, other)
    assert len(one.memory) == 3 * min(method.remembered, 100)
    assert one.count == one.rows == 300 - len(one.memory)
    assert one.images == 300
    assert one.whole_mass().sum() == pytest.approx(300)
    np.testing.assert_allclose(one.middle, unit_of(images).mean(0), atol=1e-6)
    rest = rest_of(images, one)
    np.testing.assert_allclose(one.products, rest.T @ rest, atol=1e-3)


def test_what_is_too_much_to_remember_when_pasts_are_added_goes_into_the_sums(truth):
    every = images_of(np.tile(truth, 9))
    parts = [model_of(part).past for part in np.split(every, 2)]
    both = parts[0] + parts[1]
    assert len(both.memory) == REMEMBERED
    assert both.rows == both.count == both.mass.sum() == len(every) - REMEMBERED
    expected = rest_of(every, both).sum(0)
    np.testing.assert_allclose(both.every_sums.sum(0), expected, atol=1e-3)


def test_images_that_are_remembered_are_labeled_with_the_new_ones_as_one_batch(images):
    task = Task.from_embeddings(images, CLASSES, space="embedding")
    at_once = METHOD.predict(task)
    answer = METHOD.carry_on(model_of(images[:200]), images[200:])
    np.testing.assert_array_equal(answer.classes[:, 0], at_once.labels[200:])
    np.testing.assert_allclose(
        answer.dense(np.dtype(np.float64)), at_once.probabilities[200:], atol=1e-4
    )
    first = METHOD.predict(replace(task, query=task.query[:200], zero_shot=task.zero_shot[:200]))
    changed = first.labels != at_once.labels[:200]
    assert (answer.drift.remembered, sum(answer.drift.renamed.values())) == (200, changed.sum())
    memory = answer.model.past.memory
    np.testing.assert_array_equal(memory.written[100:], first.labels)  # after the 100 new ones
    np.testing.assert_array_equal(memory.labels, np.roll(at_once.labels, 100))


def test_what_is_remembered_does_not_depend_on_the_order(images):
    one = SOME.carry_on(model_of(images[:200], SOME), images[200:]).model.past
    two = SOME.carry_on(model_of(images[150:], SOME), images[:150]).model.past
    np.testing.assert_allclose(in_order(one.memory).images, in_order(two.memory).images, atol=1e-6)
    assert len(one.memory) == 50
    assert (one.count, one.rows) == (two.count, two.rows) == (250, 250)
    assert one.mass.sum() == pytest.approx(250)
    rest = rest_of(images, one)
    np.testing.assert_allclose(one.every_sums.sum(0), rest.sum(0), atol=1e-3)
    np.testing.assert_allclose(one.products, rest.T @ rest, atol=1e-3)


def test_the_sums_of_carrying_on_are_those_of_both(images):
    first = model_of(images[:200], SUMS)
    later = SUMS.carry_on(first, images[200:]).model.past
    assert (later.count, later.rows) == (300.0, 300.0)
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    centered = unit - unit.mean(0)
    np.testing.assert_allclose(later.products, centered.T @ centered, atol=1e-3)
    np.testing.assert_allclose(later.every_sums.sum(0), 0.0, atol=0.02)  # tiny shares are dropped
    assert later.mass.sum() == pytest.approx(300)


@pytest.mark.parametrize("method", [SUMS, SOME, METHOD])
def test_the_order_of_the_images_of_a_part_changes_nothing(images, method):
    first, later = model_of(images[:150], method), images[150:]
    order = np.random.default_rng(0).permutation(150)
    one, two = method.carry_on(first, later), method.carry_on(first, later[order])
    np.testing.assert_array_equal(one.classes[order, 0], two.classes[:, 0])
    np.testing.assert_allclose(one.probabilities[order], two.probabilities, atol=1e-4)
    assert_same(replace(one.model.past, log_power=0.0), replace(two.model.past, log_power=0.0))


def test_a_small_part_gains_from_what_came_before(truth, images):
    first = model_of(images[:240])
    joined = alone = 0
    for start in range(240, 300, 10):
        part = slice(start, start + 10)
        task = Task.from_embeddings(images[part], CLASSES, space="embedding")
        alone += (METHOD.predict(task).labels == truth[part]).sum()
        joined += (METHOD.carry_on(first, images[part]).classes[:, 0] == truth[part]).sum()
    assert joined > alone


def test_the_model_is_carried_on_through_a_file(images):
    first = model_of(images[:150])
    read = AnchoredModel.from_arrays(first.arrays())
    assert_same(first.past, read.past)
    one, two = METHOD.carry_on(first, images[150:]), METHOD.carry_on(read, images[150:])
    np.testing.assert_array_equal(one.classes, two.classes)
    older = {name: array for name, array in first.arrays().items() if "past" not in name}
    with pytest.raises(InvalidSetting, match="older version"):
        METHOD.carry_on(AnchoredModel.from_arrays(older), images[150:])


def test_a_corrected_image_is_no_longer_remembered_but_counted(images):
    past, unit = model_of(images, SOME).past, unit_of(images)
    rows, labels = unit[past.memory.find(unit) >= 0][:3], past.memory.labels[:3]
    settled = past.corrected(rows, labels, np.array([5, labels[1], -1]))
    assert (len(settled.memory), settled.count, settled.images) == (47, 252, 299)
    assert settled.mass[5] >= past.mass[5] + 1
    assert settled.present[5] == 1.0
    gained = settled.every_sums.sum(0) - past.every_sums.sum(0)
    np.testing.assert_allclose(gained, (rows[:2] - past.middle).sum(0), atol=1e-6)


def test_a_corrected_image_moves_to_its_class_or_leaves(images):
    past, unit = model_of(images, SUMS).past, unit_of(images)
    moved = past.corrected(unit[:2], np.array([0, 1]), np.array([5, 1]))
    assert moved.mass[5] == pytest.approx(past.mass[5] + 1)
    assert moved.mass[0] == pytest.approx(past.mass[0] - 1)
    assert moved.mass[1] == past.mass[1]
    np.testing.assert_allclose(
        moved.every_sums[5] - past.every_sums[5], unit[0] - past.middle, atol=1e-9
    )
    gone = past.corrected(unit[:1], np.array([0]), np.array([-1]))
    assert gone.count == past.count - 1
    assert np.trace(gone.products) < np.trace(past.products)


def test_new_classes_and_strange_images_are_said(truth, images):
    first = model_of(images)
    strange = np.random.default_rng(3).normal(-1.0, 0.3, (10, 24))
    later = np.concatenate([images_of(np.full(12, 9), seed=5), strange])
    drift = METHOD.carry_on(first, later).drift
    assert drift.appeared.get(9, 0) >= 10
    assert drift.far[12:].mean() > drift.far[:12].mean()
    same = METHOD.carry_on(first, images_of(truth[:30], seed=7)).drift
    assert same.appeared == {}
    assert same.far_share < drift.far_share


@pytest.mark.parametrize(
    ("before", "counts", "said"),
    [
        ([100, 100, 0], [5, 5, 3], {2: 3}),  # three images of a class that had none
        ([100, 100, 0], [20, 20, 1], {}),  # one of 41 may be chance
        ([97, 97, 6], [5, 5, 8], {2: 8}),  # errors before do not hide a class that appears
        ([97, 97, 6], [9, 10, 1], {}),
        ([10, 10, 0], [40, 40, 4], {}),  # of 20 images before, none of a rare class is no wonder
        ([150, 50, 0], [50, 50, 0], {}),  # significant, but not many times as common
    ],
)
def test_classes_that_are_far_more_common_than_chance_allows_are_said(images, before, counts, said):
    past = model_of(images, SUMS).past
    mass = np.zeros(24)
    mass[:3] = before
    past = replace(past, mass=mass, count=float(sum(before)))
    labels = np.repeat([0, 1, 2], counts)
    assert Drift.of(past, labels, np.full((len(labels), 2), 0.1)).appeared == said


def test_what_is_usual_of_few_images_is_not_said():
    few = model_of(images_of(np.arange(6)))
    assert not Drift.of(few.past, np.zeros(3, int), np.full((3, 2), 0.99)).far.any()


def test_a_class_that_held_others_lets_its_own_images_in_and_says_so(truth, images):
    # Ten images of another kind had the label of class 9 before.
    first, unit = model_of(images, SUMS), unit_of(images)
    wrong = np.flatnonzero(truth == 2)[:10]
    past = first.past.corrected(unit[wrong], np.full(10, 2), np.full(10, 9))
    later = np.concatenate([images_of(np.full(8, 9), seed=5), images_of(truth[:20], seed=6)])
    corrected = replace(first, learned=replace(first.learned, past=past))
    answer = SUMS.carry_on(corrected, later)
    assert (answer.classes[:8, 0] == 9).sum() >= 6
    assert 9 in answer.drift.moved
    assert answer.model.past.every_mass[9] > 15  # nothing is forgotten: sums add up
