"""What encoders in onnxruntime share: a session, a check of the pixels, rows of unit length."""

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
        raise MissingExtra(f"The encoder {encoder}", "onnx") from None
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


def check_pixels(
    pixels: Float32[np.ndarray, "image 3 height width"], size: int, encoder: str
) -> None:
    """Refuse images that were not prepared for this encoder."""
    if pixels.shape[1:] != (3, size, size):
        raise InvalidEncoder(
            f"Expected pixels of shape (n, 3, {size}, {size}) for {encoder}, found "
            f"{pixels.shape}; prepare images with the encoder's own `preprocessing`."
        )


def scaled_to_unit(rows: Float32[np.ndarray, "row feature"]) -> Float32[np.ndarray, "row feature"]:
    """Return rows of length 1; zeros pass, and `embed` counts such images as skipped."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, np.finfo(np.float32).tiny)
