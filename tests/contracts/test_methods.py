"""What every method of the catalogue promises: a new one is checked by being listed."""

import inspect
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from small_tasks import CASES, CLASSES, Arrays, arrays, build, for_method

from transduce import METHODS, InvalidTask, Method, Task

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

every_method = pytest.mark.parametrize("name", METHODS)
every_case = pytest.mark.parametrize(("name", "space"), CASES)


def assert_distributions(probabilities: np.ndarray, rows: int) -> None:
    assert probabilities.shape == (rows, CLASSES)
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)


@every_method
def test_is_spelled_the_same_everywhere(name):
    method = METHODS[name]
    assert method.name == name
    assert method.__name__.lower() == name.replace("-", "")
    # A file holds one method or a twin pair, which then shares its name.
    assert Path(inspect.getfile(method)).stem.replace("_", "-") in name


@every_method
def test_file_opens_with_a_citation(name):
    assert re.search(r"\b(19|20)\d\d\b", inspect.getmodule(METHODS[name]).__doc__)


@every_method
def test_is_a_method_with_settings_that_cannot_be_changed(name):
    method = build(name)
    assert isinstance(method, Method)
    for field in fields(method):
        assert field.kw_only
        with pytest.raises(AttributeError):
            setattr(method, field.name, 1)
    with pytest.raises(TypeError, match="no_such_setting"):
        METHODS[name](no_such_setting=1)


@every_method
def test_grid_holds_values_of_its_settings(name):
    method = build(name)
    for field, values in method.grid.items():
        assert len(set(values)) == len(values) > 1
        for value in values:
            assert getattr(replace(method, **{field: value}), field) == value


@every_case
def test_answers_with_distributions_of_the_task_precision(name, space):
    method = build(name)
    task = for_method(method).task(space)
    prediction = method.predict(task)
    assert_distributions(prediction.probabilities, task.n_queries)
    assert prediction.probabilities.dtype == task.query.dtype
    assert prediction.trace.iterations >= 0
    assert np.isfinite(prediction.trace.objective).all()


@every_case
def test_leaves_its_inputs_alone(name, space):
    method = build(name)
    task = for_method(method).task(space)
    arrays_of_task = (task.query, task.zero_shot, task.support, task.support_labels)
    held = [array for array in arrays_of_task if array is not None]
    before = [array.copy() for array in held]
    for array in held:
        array.flags.writeable = False  # writing would raise at once
    prediction = method.predict(task)
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert not np.shares_memory(prediction.probabilities, array)


@every_case
def test_answers_the_same_twice(name, space):
    method = build(name)
    task = for_method(method).task(space)
    first, second = method.predict(task), build(name).predict(task)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.trace.objective == second.trace.objective


@every_case
def test_order_of_queries_does_not_matter(name, space):
    method = build(name)
    given = for_method(method)
    order = np.random.default_rng(0).permutation(len(given.images))
    straight = method.predict(given.task(space))
    mixed = method.predict(replace(given, images=given.images[order]).task(space))
    np.testing.assert_allclose(mixed.probabilities, straight.probabilities[order], atol=1e-6)
    np.testing.assert_array_equal(mixed.labels, straight.labels[order])


@every_case
def test_numbering_of_classes_does_not_matter(name, space):
    given = for_method(METHODS[name])
    order = np.random.default_rng(1).permutation(CLASSES)  # new class i was class order[i]
    labels = given.support_labels
    renumbered = replace(
        given,
        classes=given.classes[order],
        support_labels=None if labels is None else np.argsort(order)[labels],
    )
    straight = build(name).predict(given.task(space))
    mixed = build(name, class_order=order).predict(renumbered.task(space))
    np.testing.assert_array_equal(order[mixed.labels], straight.labels)
    np.testing.assert_allclose(mixed.probabilities, straight.probabilities[:, order], atol=1e-5)


@every_case
def test_labels_a_single_query(name, space):
    method = build(name)
    prediction = method.predict(for_method(method, queries=1).task(space))
    assert_distributions(prediction.probabilities, 1)
    assert prediction.labels.shape == (1,)


@every_case
def test_bears_classes_without_queries(name, space):
    method = build(name)
    task = for_method(method, queries=10, present=2).task(space)
    prediction = method.predict(task)
    assert_distributions(prediction.probabilities, 10)
    assert set(prediction.labels) <= set(range(CLASSES))


@every_case
def test_bears_exact_zeros_and_ones(name, space):
    method = build(name)
    corners = np.eye(CLASSES)
    labels = None if method.support == "unused" else np.arange(CLASSES)
    if space == "probability":
        queries = np.repeat(corners, 2, axis=0)
        task = Task(
            query=queries,
            zero_shot=queries,
            support=None if labels is None else corners,
            support_labels=labels,
        )
    else:
        axes = np.eye(CLASSES, for_method(method).images.shape[1])
        shots = None if labels is None else axes
        task = Arrays(np.repeat(axes, 2, axis=0), axes, shots, labels).task(space)
    assert_distributions(method.predict(task).probabilities, 2 * CLASSES)


@every_case
def test_single_precision_answers_like_double(name, space):
    method = build(name)
    given = for_method(method)
    double = method.predict(given.task(space))
    single = method.predict(
        Arrays(
            given.images.astype(np.float32),
            given.classes.astype(np.float32),
            None if given.support is None else given.support.astype(np.float32),
            given.support_labels,
        ).task(space)
    )
    assert single.probabilities.dtype == np.float32
    np.testing.assert_array_equal(single.labels, double.labels)
    np.testing.assert_allclose(single.probabilities, double.probabilities, atol=2e-3)


@every_case
def test_support_is_used_or_missed_with_a_reason(name, space):
    method = build(name)
    without = arrays(support=False).task(space)
    with_support = arrays().task(space)
    if method.support == "needed":
        with pytest.raises(InvalidTask, match=f"Expected support for {name}, found none; give"):
            method.predict(without)
    elif method.support == "unused":
        np.testing.assert_array_equal(
            method.predict(without).probabilities, method.predict(with_support).probabilities
        )
    else:
        # Shots that say the opposite of the encoder must count for something.
        shots = np.roll(arrays().support, 3, axis=0)
        turned = replace(arrays(), support=shots).task(space)
        assert (method.predict(turned).labels != method.predict(with_support).labels).any()
        method.predict(without)


@every_method
def test_other_spaces_are_refused_with_the_remedy(name):
    method = build(name)
    for space in {"probability", "embedding"} - set(method.spaces):
        with pytest.raises(InvalidTask, match=r"build it with Task\.from_embeddings"):
            method.predict(for_method(method).task(space))


@pytest.mark.parametrize(
    ("name", "space"), [(name, space) for name, space in CASES if METHODS[name].inductive]
)
def test_inductive_answers_do_not_depend_on_the_batch(name, space):
    method = build(name)
    given = for_method(method)
    batch = method.predict(given.task(space)).probabilities
    for i in range(4):
        alone = method.predict(replace(given, images=given.images[i : i + 1]).task(space))
        np.testing.assert_allclose(alone.probabilities, batch[i : i + 1], atol=1e-9)


@every_case
def test_model_labels_new_images_one_by_one(name, space):
    method = build(name)
    task = for_method(method).task(space)
    prediction = method.predict(task)
    if prediction.model is None:
        assert method.inductive  # then predicting again is the model
        return
    together = prediction.model.probabilities(task.query)
    assert_distributions(together, task.n_queries)
    alone = prediction.model.probabilities(task.query[2:3])
    np.testing.assert_allclose(alone, together[2:3], atol=1e-9)
    # On the very batch, what was learnt agrees with what was answered.
    assert np.mean(together.argmax(1) == prediction.labels) >= 0.9
