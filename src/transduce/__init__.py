"""Label a batch of images jointly with a CLIP-like encoder, better than one by one."""

from transduce.errors import InvalidSetting, InvalidTask, TransduceError, UnknownName
from transduce.methods import METHODS, Method
from transduce.methods.many import predict_many
from transduce.task import Prediction, Task, Trace

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
