"""Encoders: images and sentences to unit vectors of one space, by name."""

from dataclasses import dataclass
from importlib import import_module

from transduce.catalogue import Catalogue
from transduce.encoders.encoder import Encoder, Identity, LoadSettings
from transduce.encoders.preprocessing import Preprocessing
from transduce.errors import InvalidEncoder, UnknownName

__all__ = ["ENCODERS", "Encoder", "EncoderEntry", "Identity", "Preprocessing", "load_encoder"]


@dataclass(frozen=True, slots=True)
class EncoderEntry:
    """A kind of encoder: `loader` is "module:function" in this package, imported when needed.

    The function takes the name after the prefix and `LoadSettings`, and returns the encoder. An
    `example` without a colon takes no name.
    """

    loader: str
    example: str
    about: str

    def load(self, name: str, settings: LoadSettings) -> Encoder:
        """Import the loader and call it."""
        module, _, function = self.loader.partition(":")
        return getattr(import_module(f"transduce.encoders.{module}"), function)(name, settings)


ENCODERS: Catalogue[EncoderEntry] = Catalogue(
    "encoder",
    {
        "default": EncoderEntry(
            "shapes:load_shapes", "default", "comes with transduce; knows drawn shapes, no photos"
        ),
        "hf": EncoderEntry(
            "hugging_face:load_hugging_face",
            "hf:openai/clip-vit-base-patch32",
            "CLIP and SigLIP from Hugging Face: pip install 'transduce[hf]'",
        ),
        "onnx": EncoderEntry(
            "onnx:load_onnx",
            "onnx:DIR",
            "a folder of transduce export-onnx: pip install 'transduce[onnx]'",
        ),
        "open_clip": EncoderEntry(
            "open_clip:load_open_clip",
            "open_clip:ViT-B-32/openai",
            "any model of open_clip: pip install 'transduce[open-clip]'",
        ),
        "precomputed": EncoderEntry(
            "precomputed:load_precomputed",
            "precomputed:STORE",
            "a feature store with the embeddings of its sentences",
        ),
    },
)
# open_clip's own prefixes, and the names of the paper's backbones, mean open_clip.
OPEN_CLIP_STARTS = ("hf-hub:", "local-dir:", "ViT-", "RN50", "RN101")


def load_encoder(
    identifier: str, *, offline: bool = False, device: str = "cpu", batch_size: int = 64
) -> Encoder:
    """Load an encoder by name.

    Parameters
    ----------
    identifier : str
        `open_clip:ViT-B-32/openai` or any model and tag of open_clip,
        `hf:openai/clip-vit-base-patch32` or any CLIP or SigLIP of transformers (a hub name or a
        folder), `onnx:DIR` as `transduce export-onnx` writes it, `precomputed:STORE` for features
        with the embeddings of their sentences, or `default`, a small encoder of drawn shapes that
        comes with the library.
    offline : bool, default False
        Download nothing; weights must be in the cache.
    device : str, default "cpu"
        For encoders in torch: "cpu", "cuda", "cuda:1" or "mps".
    batch_size : int, default 64
        For encoders in torch: images or sentences per forward pass. Lower it if memory runs out.

    Returns
    -------
    Encoder
        Its towers may be loaded only when they are first used.

    Raises
    ------
    UnknownName
        If there is no such kind of encoder, model or tag; the message names the nearest.
    InvalidEncoder, MissingWeights, MissingExtra, EncoderUnavailable
        If it cannot be loaded; the message says what to do.

    Examples
    --------
    >>> encoder = load_encoder("default")
    >>> encoder.identity.dimension
    65
    >>> encoder.embed_texts(["a photo of a red circle."]).shape
    (1, 65)
    """
    if batch_size < 1:
        raise InvalidEncoder(f"Expected a batch size of at least 1, found {batch_size}.")
    if identifier.startswith(OPEN_CLIP_STARTS):
        identifier = f"open_clip:{identifier}"
    prefix, _, name = identifier.partition(":")
    if prefix.replace("-", "_") == "open_clip":
        prefix = "open_clip"
    if prefix not in ENCODERS:
        raise UnknownName("encoder (default, or PREFIX:NAME)", prefix, ENCODERS)
    entry = ENCODERS[prefix]
    if ":" in entry.example and not name:
        raise InvalidEncoder(
            f"Expected a name after {prefix}:, found {identifier!r}; write it as in "
            f"{entry.example}."
        )
    return entry.load(name, LoadSettings(offline, device, batch_size))
