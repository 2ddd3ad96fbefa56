"""What encoders in onnxruntime share: a session, and rows of unit length."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from transduce.errors import InvalidEncoder, MissingExtra

PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def open_session(path: Path, encoder: str, threads: int = 0) -> Any:  # noqa: ANN401 (no types)
    """Return an onnxruntime session of the model at `path`; with 0 threads it decides."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra(f"The encoder {encoder}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # its warnings are about graphs, for their makers
    available = onnxruntime.get_available_providers()
    providers = [provider for provider in PROVIDERS if provider in available]
    try:
        return onnxruntime.InferenceSession(str(path), options, providers)
    except Exception as error:  # onnxruntime's errors share no public type
        reason = str(error).splitlines()[0]
        raise InvalidEncoder(
            f"Expected a model that onnxruntime can load in {path}, found: {reason}; "
            "export it again."
        ) from error


def scaled_to_unit(rows: Float32[np.ndarray, "row feature"]) -> Float32[np.ndarray, "row feature"]:
    """Return rows of length 1; zeros pass, and `embed` counts such images as skipped."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, np.finfo(np.float32).tiny)
