"""The encoder protocol: images and sentences to unit vectors, with an identity."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float32

from transduce.encoders.hub import DownloadBar, no_bar
from transduce.encoders.preprocessing import Pixels, Preprocessing
from transduce.errors import InvalidEncoder

if TYPE_CHECKING:
    from transduce.encoders.class_names import ClassNames

ImageRows = Float32[np.ndarray, "image feature"]

DEFAULT_TEMPLATE = "a photo of a {}."
RENAMED = {"default": "shapes"}  # names in stores and runs of version 0.1.0.dev0, still read
DECLARED = "as declared"  # by whoever imported the features: there is no hash to compare


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
