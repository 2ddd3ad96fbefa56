"""What a method is: a frozen dataclass whose fields are its settings, and one function."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from transduce.errors import InvalidTask
from transduce.task import Prediction, Space, Task
from transduce.validation import every_class_present

Support = Literal["unused", "optional", "needed"]


@runtime_checkable
class Method(Protocol):
    """Labels one task. It sees 2-D arrays; never query labels, a model, a device or a file.

    `inductive` methods answer for each image alone, whatever else is in the batch. `grid` holds
    the values worth trying on validation data, by field: the setting to tune, or nothing.
    """

    name: ClassVar[str]
    spaces: ClassVar[tuple[Space, ...]]
    support: ClassVar[Support]
    inductive: ClassVar[bool]
    grid: ClassVar[Mapping[str, tuple[float, ...]]]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # so that `fields` lists the settings

    def predict(self, task: Task) -> Prediction: ...


def accept(method: Method, task: Task, *, partial_support: bool = False) -> None:
    """Refuse a task that the method is not made for, before any work.

    `partial_support` says that the method can do with shots of some of the classes.
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
    if task.partial_support and task.support_labels is not None and not partial_support:
        every_class_present(f"support for {method.name}", task.support_labels, task.n_classes)
