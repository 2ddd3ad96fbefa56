"""The `Method` protocol: a frozen dataclass whose fields are its settings, with one function."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from transduce.errors import ConvergenceWarning, InvalidTask
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import every_class_present

Support = Literal["unused", "optional", "needed"]
Rows = Float[np.ndarray, "row feature"]
RowProbabilities = Float[np.ndarray, "row class"]


@runtime_checkable
class Method(Protocol):
    """What `transduce` asks of a method: five class attributes and `predict`.

    A method is a frozen dataclass; its keyword-only fields are its settings, with defaults. It
    sees the 2-D arrays of one task: never query labels, an image encoder, a device or a file.
    `transduce.testing.check_method` checks all that is promised here.

    Attributes
    ----------
    name : str
        The name in `METHODS` and on the command line: the class name in lower case, with hyphens.
    spaces : tuple of {"probability", "embedding"}
        The feature spaces that the method takes, the preferred one first.
    support : {"unused", "optional", "needed"}
        What the method does with labeled shots. A task without shots is refused if "needed".
    inductive : bool
        True if the answer for an image never depends on the other queries.
    grid : mapping of str to tuple of float
        Values worth trying on validation data, by field; empty if nothing is to be tuned.

    Examples
    --------
    >>> from transduce import METHODS, Method
    >>> METHODS["em-dirichlet"].support
    'optional'
    >>> isinstance(METHODS["em-dirichlet"](max_iter=50), Method)
    True
    """

    name: ClassVar[str]
    spaces: ClassVar[tuple[Space, ...]]
    support: ClassVar[Support]
    inductive: ClassVar[bool]
    grid: ClassVar[Mapping[str, tuple[float, ...]]]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # `dataclasses.fields` lists the settings

    # The settings differ from class to class; each dataclass refuses those it does not have.
    def __init__(self, **settings: Any) -> None: ...  # noqa: ANN401

    def predict(self, task: Task) -> Prediction:
        """Label all queries of a task.

        Parameters
        ----------
        task : Task
            Its arrays are read, never written.

        Returns
        -------
        Prediction
            Probabilities (query, class) in the precision of `task.query`.

        Raises
        ------
        InvalidTask
            If the method is not made for the task: another space, or no support.
        """
        ...


def accept(method: Method, task: Task, *, partial_support: bool = False) -> None:
    """Raise `InvalidTask` for a task that the method is not made for, before any work.

    Parameters
    ----------
    method : Method
        The method that was given the task.
    task : Task
        The task to check.
    partial_support : bool, default=False
        Whether the method can do with shots of only some of the classes.
    """
    if task.space not in method.spaces:
        raise InvalidTask(
            f"Expected a task in {method.name}'s space, {' or '.join(method.spaces)}, found one in "
            f"{task.space}; build it with Task.from_embeddings(..., space={method.spaces[0]!r})."
        )
    if method.support == "needed" and task.support is None:
        raise InvalidTask(
            f"Expected support for {method.name}, found none; give labeled shots of every class, "
            "or choose a zero-shot method."
        )
    refuses_some = not partial_support and method.support != "unused"
    if task.partial_support and task.support_labels is not None and refuses_some:
        every_class_present(f"support for {method.name}", task.support_labels, task.n_classes)


_silenced: ContextVar[bool] = ContextVar("convergence warnings silenced", default=False)


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Issue no `ConvergenceWarning` inside: for callers that report `Trace.converged` themselves.

    Unlike `warnings.catch_warnings`, this holds for the calling thread alone and costs nothing.
    """
    token = _silenced.set(True)
    try:
        yield
    finally:
        _silenced.reset(token)


def warn_unless_converged(method: Method, trace: Trace, remedy: str = "raise max_iter") -> None:
    """Issue a `ConvergenceWarning` for the caller of `predict` if the answer did not settle."""
    if not trace.converged and not _silenced.get():
        warnings.warn(
            f"Expected {method.name} to settle, found it still changing after {trace.iterations} "
            f"iterations; {remedy}, or ignore ConvergenceWarning to keep the published protocol, "
            "which stops at a fixed number of iterations.",
            ConvergenceWarning,
            stacklevel=3,
        )
