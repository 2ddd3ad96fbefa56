"""`default`: the encoder that comes with the library, a small CLIP of a drawn world.

It needs no download and knows nothing else than `transduce.benchmark.synthetic`: words from
outside are refused. embedded/CARD.md tells what it was trained on and how well it does.
"""

from pathlib import Path

from transduce.encoders.onnx import OnnxEncoder

NAME = "default"
FOLDER = Path(__file__).parent / "embedded"


def load_default(*, threads: int = 0) -> OnnxEncoder:
    return OnnxEncoder(FOLDER, name=NAME, threads=threads)
