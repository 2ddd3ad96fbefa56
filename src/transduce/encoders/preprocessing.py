"""From an image to the array an image tower takes, in PIL and NumPy alone."""

import json
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float32
from PIL import Image

from transduce.errors import InvalidEncoder

Pixels = Float32[np.ndarray, "image 3 height width"]


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Resize, center crop, normalize: what CLIP-like towers were trained with.

    `shortest` scales the shorter side to `size` and crops the center (CLIP); `squash` scales
    both sides to `size` (SigLIP). `resize_to` is the length that sides are scaled to where it is
    more than `size`, and the margin is cut off (DINOv2: 256 to 224). Where an odd number of pixels
    is cut off, torchvision (and so open_clip) rounds half of it to the nearest even number,
    transformers rounds it down: `crop`.
    """

    size: int = 224
    mean: tuple[float, float, float] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, float, float] = (0.26862954, 0.26130258, 0.27577711)
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"
    resize: Literal["shortest", "squash"] = "shortest"
    crop: Literal["nearest", "down"] = "nearest"
    resize_to: int | None = None

    @property
    def side(self) -> int:
        """The length that sides are scaled to before the crop."""
        return self.resize_to or self.size

    def __call__(self, image: Image.Image) -> Float32[np.ndarray, "3 size size"]:
        """Return the RGB image as a (3, size, size) array."""
        resampling = Image.Resampling[self.interpolation.upper()]
        width, height = self.side, self.side
        if self.resize == "shortest":
            short = min(image.size)
            width, height = (int(self.side * length / short) for length in image.size)
        resized = image.resize((width, height), resampling)
        left, top = (self._margin(side - self.size) for side in (width, height))
        cropped = resized.crop((left, top, left + self.size, top + self.size))
        pixels = np.asarray(cropped, dtype=np.float32) / np.float32(255.0)
        normalized = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(normalized.transpose(2, 0, 1))

    def _margin(self, excess: int) -> int:
        return round(excess / 2) if self.crop == "nearest" else excess // 2

    def checked(self, pixels: Pixels, encoder: str) -> Pixels:
        """Return `pixels` in float32; refuse images of another size."""
        if pixels.shape[1:] != (3, self.size, self.size):
            raise InvalidEncoder(
                f"Expected pixels of shape (n, 3, {self.size}, {self.size}) for {encoder}, found "
                f"{pixels.shape}; prepare images with the encoder's own `preprocessing`."
            )
        return np.asarray(pixels, np.float32)

    def describe(self) -> str:
        """Return the settings as text, for `Identity`."""
        settings = asdict(self)  # without what older stores do not name, so that theirs stay equal
        if self.resize_to is None:
            del settings["resize_to"]
        return json.dumps(settings, sort_keys=True)
