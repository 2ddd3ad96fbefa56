"""What an encoder is: the protocol, and the values that describe one.

An image becomes the array that an image tower takes by `Preprocessing`, in PIL and NumPy alone, so
that it can be done in other processes. `Identity` says whose embeddings may be compared.
"""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from jaxtyping import Float32
from PIL import Image

from transduce.encoders.hub import DownloadBar, no_bar
from transduce.errors import InvalidEncoder

if TYPE_CHECKING:
    from transduce.encoders.class_names import ClassNames

Pixels = Float32[np.ndarray, "image 3 height width"]
ImageRows = Float32[np.ndarray, "image feature"]

DEFAULT_TEMPLATE = "a photo of a {}."
RENAMED = {"default": "shapes"}  # names in stores and runs of version 0.1.0.dev0, still read
DECLARED = "as declared"  # by whoever imported the features: there is no hash to compare


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


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that decides what an embedding is: two stores mix only if these are equal.

    Parameters
    ----------
    encoder : str
        As the user writes it, such as "open_clip:ViT-B-32/openai".
    weights : str
        A hash of the weights, not their name.
    preprocessing : str
        `Preprocessing.describe()`.
    dimension : int
        The number of columns of an embedding.
    origin : str
        Where the weights came from: repository, revision and the hash of each file, if known. It
        is for the record: two copies of the same weights are the same encoder.
    """

    encoder: str
    weights: str
    preprocessing: str
    dimension: int
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoder", RENAMED.get(self.encoder, self.encoder))

    @classmethod
    def declared(cls, encoder: str, dimension: int) -> "Identity":
        """Return the identity of features that somebody says are of `encoder`."""
        return cls(encoder, DECLARED, DECLARED, dimension)


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How an encoder is loaded; `device` and `batch_size` are for the encoders in torch."""

    offline: bool = False  # download nothing
    device: str = "cpu"
    batch_size: int = 64
    bar: DownloadBar = no_bar  # shows a download


class ImageEncoder(Protocol):
    """Unit embeddings of images. What `embed` needs; enough for the view of a task.

    Attributes
    ----------
    identity : Identity
        Name and hash of the weights, so that features of different encoders never mix.
    preprocessing : Preprocessing
        A plain value, so that worker processes can decode images into the array that
        `embed_images` takes without loading the model.
    """

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """Name, hash of the weights, preprocessing and dimension."""

    @property
    @abstractmethod
    def preprocessing(self) -> Preprocessing:
        """How an image becomes the array that `embed_images` takes."""

    @abstractmethod
    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Return a unit row for each preprocessed image."""


class Encoder(ImageEncoder, Protocol):
    """Unit embeddings of images and of sentences, comparable by their cosine.

    Inherit from this class and write `identity`, `preprocessing` (see `ImageEncoder`),
    `embed_images` and `embed_texts`; `embed_classes` comes with it. In one that sees images only,
    `embed_texts` raises `no_text(name)`: it can be a view, but cannot name classes.

    Examples
    --------
    >>> from transduce.encoders import load_encoder
    >>> encoder = load_encoder("shapes")
    >>> encoder.embed_classes(["red circle", "blue star"]).shape
    (2, 65)
    """

    @abstractmethod
    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Return a unit row for each sentence."""

    def embed_classes(
        self,
        classes: "str | Sequence[str] | ClassNames",
        templates: Sequence[str] = (DEFAULT_TEMPLATE,),
    ) -> Float32[np.ndarray, "class feature"]:
        """Return a unit row for each class; see `transduce.encoders.prompts.embed_classes`.

        Parameters
        ----------
        classes : sequence of str, str or ClassNames
            Two or more class names, or text with commas between them.
        templates : sequence of str, default ("a photo of a {}.",)
            Sentences with `{}` where the class goes; of several, their mean direction is taken,
            which is usually a little more accurate.
        """
        from transduce.encoders.prompts import embed_classes

        return embed_classes(self, classes, templates)


def no_text(encoder: str) -> InvalidEncoder:
    """Return the error to raise where an encoder of images alone is asked for words."""
    return InvalidEncoder(
        f"Expected an encoder that knows words, to name classes, found {encoder}, which sees "
        "images only; take a CLIP as --encoder (transduce list encoders), and this one to compare "
        f"images by: --view {encoder}"
    )
