"""Label a batch of images jointly with a CLIP-like encoder, better than one by one."""

from typing import TYPE_CHECKING

from transduce.errors import InvalidSetting, InvalidTask, TransduceError, UnknownName
from transduce.methods import METHODS, Method
from transduce.methods.parallel import predict_many
from transduce.task import Prediction, Task, Trace

if TYPE_CHECKING:
    from transduce.estimator import TransductiveClassifier as TransductiveClassifier
    from transduce.labeling.notebook import Labels as Labels
    from transduce.labeling.notebook import label_folder as label_folder

__version__ = "0.1.0.dev0"

__all__ = [
    "METHODS",
    "InvalidSetting",
    "InvalidTask",
    "Labels",
    "Method",
    "Prediction",
    "Task",
    "Trace",
    "TransduceError",
    "UnknownName",
    "label_folder",
    "predict_many",
]


def __getattr__(name: str) -> object:
    if name == "TransductiveClassifier":  # not in __all__: scikit-learn is an extra, and slow
        from transduce.estimator import TransductiveClassifier

        return TransductiveClassifier
    if name in ("Labels", "label_folder"):  # the data column, loaded when it is needed
        from transduce.labeling import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
