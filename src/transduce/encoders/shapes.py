"""`shapes`: the encoder that comes with the library, a small CLIP of a drawn world.

It needs no download and knows nothing else than `transduce.benchmark.synthetic`: words from
outside are refused. embedded/CARD.md says what it was trained on and how well it does.
"""

from pathlib import Path

from transduce.encoders.encoder import LoadSettings
from transduce.encoders.onnx import OnnxEncoder

NAME = "shapes"
FOLDER = Path(__file__).parent / "embedded"


def load_shapes(
    name: str = NAME, settings: LoadSettings | None = None, *, threads: int = 0
) -> OnnxEncoder:
    """Return the encoder; with 0 threads onnxruntime decides."""
    return OnnxEncoder(FOLDER, name=name or NAME, threads=threads)
