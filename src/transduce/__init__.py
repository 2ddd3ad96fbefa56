"""Label a batch of images jointly with a CLIP-like encoder, better than one by one."""

from typing import TYPE_CHECKING

from transduce.errors import InvalidSetting, InvalidTask, TransduceError, UnknownName
from transduce.methods import METHODS, Method
from transduce.methods.many import predict_many
from transduce.task import Prediction, Task, Trace

if TYPE_CHECKING:
    from transduce.estimator import TransductiveClassifier as TransductiveClassifier

__version__ = "0.1.0.dev0"

__all__ = [
    "METHODS",
    "InvalidSetting",
    "InvalidTask",
    "Method",
    "Prediction",
    "Task",
    "Trace",
    "TransduceError",
    "UnknownName",
    "predict_many",
]


def __getattr__(name: str) -> object:
    if name == "TransductiveClassifier":  # not in __all__: scikit-learn is an extra, and slow
        from transduce.estimator import TransductiveClassifier

        return TransductiveClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
