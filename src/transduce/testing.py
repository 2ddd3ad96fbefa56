"""Contract tests of methods, as plain functions: no pytest is needed to run them.

`check_method(MyMethod)` runs all of them, as scikit-learn's `check_estimator` does. Each is a
function of how to build the method and of the feature space; `contract_checks` lists them.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from transduce.errors import InvalidTask
from transduce.methods.method import Method, Support, without_convergence_warnings
from transduce.task import Prediction, Space, Task

Build = Callable[[], Method]

CLASSES, FEATURES, SHOTS = 6, 12, 3
SPACES: tuple[Space, ...] = get_args(Space)


def check_method(method: type[Method] | Build) -> None:
    """Check that a method keeps the promises of every method of `transduce`.

    Small tasks are solved in each space of the method: inputs must stay unchanged, the answer
    be the same twice, follow permutations of queries and classes, bear single queries, absent
    classes and exact zeros, agree in float32 and float64, and use or refuse support as declared.

    Parameters
    ----------
    method : type[Method] or callable
        The class, if its defaults suffice to build it, or a function without arguments that
        builds the method: `lambda: MyMethod(strength=2.0)`. A field `class_names`, if there is
        one, must hold a name for each of 6 classes.

    Raises
    ------
    AssertionError
        For the first promise that is broken; the message names the check and the reason.

    Examples
    --------
    >>> from transduce.methods.zero_shot import ZeroShot
    >>> from transduce.testing import check_method
    >>> check_method(ZeroShot)
    """
    for name, check in contract_checks(method):
        try:
            check()
        except Exception as error:
            reason = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{name}: {reason}") from error


def contract_checks(method: type[Method] | Build) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield (name, check) of every contract test of a method, for test runners of one's own.

    A name is that of a function of this module with the feature space in brackets, such as
    `check_single_query[embedding]`.
    """
    for check in CLASS_CHECKS:
        yield check.__name__, partial(check, method)
    for space in method().spaces:
        for task_check in TASK_CHECKS:
            yield f"{task_check.__name__}[{space}]", partial(task_check, method, space)


@dataclass(frozen=True)
class SmallProblem:
    """A task as `Task.from_embeddings` takes it, so that it can be changed before it is built."""

    images: np.ndarray
    classes: np.ndarray
    support: np.ndarray | None = None
    support_labels: np.ndarray | None = None

    def task(self, space: Space) -> Task:
        """Build the task in a space."""
        return Task.from_embeddings(
            self.images,
            self.classes,
            support=self.support,
            support_labels=self.support_labels,
            space=space,
        )

    def astype(self, dtype: type[np.floating[Any]]) -> "SmallProblem":
        """Return the problem with all embeddings in another precision."""
        support = None if self.support is None else self.support.astype(dtype)
        images, classes = self.images.astype(dtype), self.classes.astype(dtype)
        return replace(self, images=images, classes=classes, support=support)


def small_problem(
    support: Support, *, queries: int = 24, present: int = CLASSES, shots: int = SHOTS
) -> SmallProblem:
    """Images near their class embedding, with shots unless `support` is "unused".

    Only the first `present` classes are among the queries.
    """
    generator = np.random.default_rng(3)
    classes = generator.normal(size=(CLASSES, FEATURES))
    shot_labels = np.repeat(np.arange(CLASSES), shots)

    def near(labels: np.ndarray) -> np.ndarray:
        return classes[labels] + 0.9 * generator.normal(size=(len(labels), FEATURES))

    images, shots_near = near(np.arange(queries) % present), near(shot_labels)
    if support == "unused":
        return SmallProblem(images, classes)
    return SmallProblem(images, classes, shots_near, shot_labels)


def check_settings_are_frozen(build: Build) -> None:
    """A method is a frozen dataclass with keyword-only fields that refuses unknown settings."""
    method = build()
    _require(isinstance(method, Method), "Expected the attributes of Method, found some missing.")
    _require(is_dataclass(method), "Expected a dataclass, found another class.")
    for field in fields(method):
        _require(field.kw_only is True, f"Expected keyword-only fields, found {field.name}.")
        frozen = _refuses(partial(setattr, method, field.name, 1), AttributeError)
        _require(frozen, f"Expected a frozen dataclass, found that {field.name} can be set.")
    strict = _refuses(partial(type(method), no_such_setting=1), TypeError)
    _require(strict, "Expected unknown settings to be refused, found them accepted.")


def check_attributes(build: Build) -> None:
    """Spaces, support and name have the values that `Method` names."""
    method = build()
    known = bool(method.spaces) and set(method.spaces) <= set(SPACES)
    _require(known, f"Expected spaces among {SPACES}, found {method.spaces}.")
    kinds, class_name = get_args(Support), type(method).__name__
    _require(method.support in kinds, f"Expected support in {kinds}, found {method.support!r}.")
    alike = class_name.lower() == method.name.replace("-", "")
    _require(alike, f"Expected a class called like {method.name!r}, found {class_name}.")


def check_grid(build: Build) -> None:
    """Each value of the grid is a setting that the method takes."""
    method = build()
    for field, values in method.grid.items():
        _require(len(set(values)) == len(values) > 1, f"Expected different values of {field}.")
        for value in values:
            taken = getattr(replace(method, **{field: value}), field)
            _require(taken == value, f"Expected {field} = {value}, found {taken}.")


def check_other_spaces_refused(build: Build) -> None:
    """A task in another space is refused with the remedy."""
    method = build()
    for space in set(SPACES) - set(method.spaces):
        refused = _refusal(method, small_problem(method.support).task(space))
        remedy = "Task.from_embeddings" in refused
        _require(remedy, f"Expected accept(self, task) to refuse {space}, found {refused!r}.")


def check_distributions(build: Build, space: Space) -> None:
    """The answer is a distribution for each query, in the precision of the task."""
    method = build()
    task = small_problem(method.support).task(space)
    prediction = _predict(method, task)
    _require_distributions(prediction.probabilities, task.n_queries)
    _require(
        prediction.probabilities.dtype == task.query.dtype,
        f"Expected dtype {task.query.dtype}, found {prediction.probabilities.dtype}.",
    )
    _require(prediction.trace.iterations >= 0, "Expected iterations of at least 0.")
    _require(np.isfinite(prediction.trace.objective).all(), "Expected a finite objective.")


def check_inputs_unchanged(build: Build, space: Space) -> None:
    """The arrays of the task are neither written nor returned."""
    method = build()
    task = small_problem(method.support).task(space)
    arrays = (task.query, task.zero_shot, task.support, task.support_labels, task.class_embeddings)
    held = [array for array in arrays if array is not None]
    copies = [array.copy() for array in held]
    for array in held:
        array.flags.writeable = False  # writing raises at once
    probabilities = _predict(method, task).probabilities
    for array, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
        _require(not np.shares_memory(probabilities, array), "Expected a new array, found a view.")


def check_same_answer_twice(build: Build, space: Space) -> None:
    """Two methods built alike answer alike, to the bit."""
    task = small_problem(build().support).task(space)
    first, second = _predict(build(), task), _predict(build(), task)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    _require(first.trace.objective == second.trace.objective, "Expected the same objective twice.")


def check_query_permutation(build: Build, space: Space) -> None:
    """The order of the queries does not matter."""
    method = build()
    problem = small_problem(method.support)
    order = np.random.default_rng(0).permutation(len(problem.images))
    straight = _predict(method, problem.task(space))
    mixed = _predict(method, replace(problem, images=problem.images[order]).task(space))
    np.testing.assert_allclose(mixed.probabilities, straight.probabilities[order], atol=1e-6)
    np.testing.assert_array_equal(mixed.labels, straight.labels[order])


def check_class_relabeling(build: Build, space: Space) -> None:
    """The numbering of the classes does not matter."""
    method = build()
    problem = small_problem(method.support)
    order = np.random.default_rng(1).permutation(CLASSES)  # new class i was class order[i]
    labels = problem.support_labels
    renumbered = replace(
        problem,
        classes=problem.classes[order],
        support_labels=None if labels is None else np.argsort(order)[labels],
    )
    straight = _predict(method, problem.task(space))
    mixed = _predict(_renamed(method, order), renumbered.task(space))
    np.testing.assert_array_equal(order[mixed.labels], straight.labels)
    np.testing.assert_allclose(mixed.probabilities, straight.probabilities[:, order], atol=1e-5)


def check_single_query(build: Build, space: Space) -> None:
    """A batch of one image is labeled."""
    method = build()
    prediction = _predict(method, small_problem(method.support, queries=1).task(space))
    _require_distributions(prediction.probabilities, 1)
    _require(prediction.labels.shape == (1,), "Expected one label for one query.")


def check_absent_classes(build: Build, space: Space) -> None:
    """Most classes may be without queries."""
    method = build()
    prediction = _predict(method, small_problem(method.support, queries=10, present=2).task(space))
    _require_distributions(prediction.probabilities, 10)
    _require(set(prediction.labels.tolist()) <= set(range(CLASSES)), "Expected labels of classes.")


def check_exact_zeros(build: Build, space: Space) -> None:
    """Probabilities of exactly 0 and 1, and orthogonal embeddings, are labeled."""
    method = build()
    axes = np.eye(CLASSES, CLASSES if space == "probability" else FEATURES)
    queries = np.repeat(axes, 2, axis=0)
    labels = None if method.support == "unused" else np.arange(CLASSES)
    shots = None if labels is None else axes
    if space == "probability":
        task = Task(query=queries, zero_shot=queries, support=shots, support_labels=labels)
    else:
        task = SmallProblem(queries, axes, shots, labels).task(space)
    _require_distributions(_predict(method, task).probabilities, 2 * CLASSES)


def check_single_precision(build: Build, space: Space) -> None:
    """Tasks in float32 and float64 get the same labels."""
    method = build()
    problem = small_problem(method.support)
    double = _predict(method, problem.task(space))
    single = _predict(method, problem.astype(np.float32).task(space))
    _require(single.probabilities.dtype == np.float32, "Expected float32 for a task in float32.")
    np.testing.assert_array_equal(single.labels, double.labels)
    np.testing.assert_allclose(single.probabilities, double.probabilities, atol=2e-3)


def check_support(build: Build, space: Space) -> None:
    """Support is used, ignored or missed with a reason, as `support` declares."""
    method = build()
    problem = small_problem("optional")
    answer = _predict(method, problem.task(space))
    without = replace(problem, support=None, support_labels=None).task(space)
    if method.support == "unused":
        np.testing.assert_array_equal(_predict(method, without).probabilities, answer.probabilities)
        return
    # Shots that say the opposite of the encoder must count for something.
    shots = np.roll(np.asarray(problem.support), SHOTS, axis=0)
    changed = _predict(method, replace(problem, support=shots).task(space))
    # Labels may stay: a method tied to the text keeps them where the encoder is sure.
    change = float(np.abs(changed.probabilities - answer.probabilities).max())
    least = 0.01 if method.support == "optional" else 1e-5
    _require(change > least, "Expected other shots to change the answer, found the same.")
    if method.support == "optional":
        _predict(method, without)
        return
    refused = _refusal(method, without)
    expected = f"Expected support for {method.name}, found none; give"
    _require(expected in refused, f"Expected accept to refuse the task, found {refused!r}.")


def check_inductive(build: Build, space: Space) -> None:
    """An inductive method answers for an image alone as in the batch."""
    method = build()
    if not method.inductive:
        return
    problem = small_problem(method.support)
    batch = _predict(method, problem.task(space)).probabilities
    for i in range(4):
        alone = replace(problem, images=problem.images[i : i + 1]).task(space)
        probabilities = _predict(method, alone).probabilities
        np.testing.assert_allclose(probabilities, batch[i : i + 1], atol=1e-9)


def check_model(build: Build, space: Space) -> None:
    """The fitted model labels images one by one, and agrees with the batch it was fitted on."""
    method = build()
    task = small_problem(method.support).task(space)
    prediction = _predict(method, task)
    if prediction.model is None:
        _require(method.inductive, "Expected Prediction.model, found None and inductive False.")
        return
    together = prediction.model.probabilities(task.query)
    _require_distributions(together, task.n_queries)
    alone = prediction.model.probabilities(task.query[2:3])
    np.testing.assert_allclose(alone, together[2:3], atol=1e-9)
    agreement = float(np.mean(together.argmax(1) == prediction.labels))
    _require(
        agreement >= 0.9, f"Expected the model to agree with the batch, found {agreement:.0%}."
    )


CLASS_CHECKS: tuple[Callable[[Build], None], ...] = (
    check_settings_are_frozen,
    check_attributes,
    check_grid,
    check_other_spaces_refused,
)
TASK_CHECKS: tuple[Callable[[Build, Space], None], ...] = (
    check_distributions,
    check_inputs_unchanged,
    check_same_answer_twice,
    check_query_permutation,
    check_class_relabeling,
    check_single_query,
    check_absent_classes,
    check_exact_zeros,
    check_single_precision,
    check_support,
    check_inductive,
    check_model,
)


def _predict(method: Method, task: Task) -> Prediction:
    with without_convergence_warnings(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's: a division by zero, an overflow
        return method.predict(task)


def _refusal(method: Method, task: Task) -> str:
    """Message of the `InvalidTask` that the method raises; "" if it raises none."""
    try:
        _predict(method, task)
    except InvalidTask as error:
        return str(error)
    return ""


def _renamed(method: Method, order: np.ndarray) -> Method:
    """Return the method for reordered classes: one that holds class names gets them reordered."""
    names = getattr(method, "class_names", None)
    if names is None:
        return method
    return replace(method, class_names=[list(names)[i] for i in order])


def _refuses(action: Callable[[], object], error: type[Exception]) -> bool:
    try:
        action()
    except error:
        return True
    return False


def _require(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_distributions(probabilities: np.ndarray, rows: int) -> None:
    shape = (rows, CLASSES)
    _require(probabilities.shape == shape, f"Expected {shape}, found {probabilities.shape}.")
    _require(np.isfinite(probabilities).all(), "Expected finite probabilities.")
    _require((probabilities >= 0).all(), "Expected no negative probability.")
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
