"""Encoders: images and sentences to unit vectors of one space, by name."""

from dataclasses import dataclass
from importlib import import_module

from transduce.catalogue import Catalogue
from transduce.encoders import pinned
from transduce.encoders.encoder import Encoder, Identity, ImageEncoder, LoadSettings, Preprocessing
from transduce.encoders.hub import DownloadBar, HubModel, no_bar
from transduce.errors import InvalidEncoder, UnknownName

__all__ = [
    "DEFAULT_ENCODER",
    "ENCODERS",
    "Encoder",
    "EncoderEntry",
    "HubModel",
    "Identity",
    "ImageEncoder",
    "Preprocessing",
    "load_encoder",
]


@dataclass(frozen=True, slots=True)
class EncoderEntry:
    """A kind of encoder: `loader` is "module:function" in this package, imported when needed.

    The function takes the name after the prefix and `LoadSettings`, and returns the encoder. An
    `example` without a colon takes no name. A `hub` model is given to the function instead of the
    name.
    """

    loader: str
    example: str
    about: str
    hub: HubModel | None = None

    def load(self, name: str, settings: LoadSettings) -> Encoder:
        """Import the loader and call it."""
        module, _, function = self.loader.partition(":")
        load = getattr(import_module(f"transduce.encoders.{module}"), function)
        return load(name if self.hub is None else self.hub, settings)


DEFAULT_ENCODER = "clip"
ENCODERS: Catalogue[EncoderEntry] = Catalogue(
    "encoder",
    {
        "clip": EncoderEntry(
            "onnx_hub:load_onnx_hub",
            "clip",
            "the default: OpenAI's CLIP ViT-B/32, for photos; 609 MB, once",
            pinned.CLIP,
        ),
        "clip-q8": EncoderEntry(
            "onnx_hub:load_onnx_hub",
            "clip-q8",
            "the same in 8 bits: 156 MB, faster, a little less exact",
            pinned.CLIP_Q8,
        ),
        "dinov2": EncoderEntry(
            "onnx_image:load_hub_image",
            "dinov2",
            "images only, for --view; 89 MB, once",
            pinned.DINOV2,
        ),
        "dinov2-q8": EncoderEntry(
            "onnx_image:load_hub_image",
            "dinov2-q8",
            "the same in 8 bits: smaller, faster, a little less exact",
            pinned.DINOV2_Q8,
        ),
        "hf": EncoderEntry(
            "hugging_face:load_hugging_face",
            "hf:openai/clip-vit-base-patch32",
            "CLIP and SigLIP from Hugging Face: pip install 'transduce[hf]'",
        ),
        "onnx": EncoderEntry(
            "onnx:load_onnx",
            "onnx:DIR",
            "a folder of transduce export-onnx",
        ),
        "onnx-hub": EncoderEntry(
            "onnx_hub:load_any_onnx_hub",
            "onnx-hub:Xenova/clip-vit-large-patch14",
            "any CLIP or SigLIP of the hub with ONNX files of both towers",
        ),
        "onnx-image": EncoderEntry(
            "onnx_image:load_onnx_image",
            "onnx-image:DIR",
            "images only, for --view: a folder as on the hub, with onnx/model.onnx",
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
        "shapes": EncoderEntry(
            "onnx:load_shapes",
            "shapes",
            "comes with transduce; knows the drawn shapes of the demo, no photos",
        ),
    },
)
# open_clip's own prefixes, and the names of the paper's backbones, mean open_clip.
OPEN_CLIP_STARTS = ("hf-hub:", "local-dir:", "ViT-", "RN50", "RN101")


def load_encoder(
    identifier: str,
    *,
    offline: bool = False,
    device: str = "cpu",
    batch_size: int = 64,
    bar: DownloadBar = no_bar,
) -> Encoder:
    """Load an encoder by name.

    Parameters
    ----------
    identifier : str
        `clip`, OpenAI's CLIP ViT-B/32, downloaded once, or `clip-q8`, the same in 8 bits;
        `onnx-hub:ORG/NAME` or `onnx-hub:ORG/NAME@REVISION`, another CLIP or SigLIP of the hub
        whose repository has ONNX files of both towers;
        `open_clip:ViT-B-32/openai` or any model and tag of open_clip,
        `hf:openai/clip-vit-base-patch32` or any CLIP or SigLIP of transformers (a hub name or a
        folder), `onnx:DIR` as `transduce export-onnx` writes it, `precomputed:STORE` for features
        with the embeddings of their sentences, or `shapes`, a small encoder of drawn shapes that
        comes with the library. `dinov2` and `onnx-image:DIR` have no text tower: they are for the
        view of a task.
    offline : bool, default False
        Download nothing; weights must be in the cache.
    device : str, default "cpu"
        For encoders in torch: "cpu", "cuda", "cuda:1" or "mps".
    batch_size : int, default 64
        For encoders in torch: images or sentences per forward pass. Lower it if memory runs out.
    bar : callable, optional
        Called with a title and a number of bytes where `clip` or another model with a name of its
        own is downloaded; returns a context manager of a function of the bytes of each step.

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
    >>> encoder = load_encoder("shapes")
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
        raise UnknownName("encoder (NAME, or PREFIX:NAME)", prefix, ENCODERS)
    entry = ENCODERS[prefix]
    if ":" in entry.example and not name:
        raise InvalidEncoder(
            f"Expected a name after {prefix}:, found {identifier!r}; write it as in "
            f"{entry.example}."
        )
    return entry.load(name, LoadSettings(offline, device, batch_size, bar))
