"""Synthetic data: drawn images and simulated embeddings, for all that must run without a download.

Each drawing shows one thing: a shape of a color, filled with a texture. Its classes are the pairs
of color and shape, such as "red circle". The toy world has these parts:

- `things`: the shapes, colors and textures; which pairs the shapes encoder was trained on (`SEEN`)
  and which it never met (`UNSEEN`).
- `outlines`, `drawing`: a thing becomes an image, in a look: `training`, or `shifted` (other
  backgrounds, tinted light, blur, noise), which the encoder never met either.
- `drawn_features`: the dataset `drawn:N` of the benchmark.
- `simulated`: batches of embeddings that vary as CLIP's do, without images or encoder.
- `transduce.encoders.onnx.load_shapes`: the encoder of these drawings, `shapes`, which comes with
  the library; `transduce.encoders.tokenizers.words`: its closed vocabulary.
- `training/` in the repository, outside the package: its captions, training and export.
"""

from transduce.benchmark.synthetic.drawing import IMAGE_SIZE, LOOKS, Look, draw
from transduce.benchmark.synthetic.things import (
    COLORS,
    SEEN,
    SHAPES,
    TEXTURES,
    UNSEEN,
    Thing,
    name_of,
)

__all__ = [
    "COLORS",
    "IMAGE_SIZE",
    "LOOKS",
    "SEEN",
    "SHAPES",
    "TEXTURES",
    "UNSEEN",
    "Look",
    "Thing",
    "draw",
    "name_of",
]
