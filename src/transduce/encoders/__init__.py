"""Encoders: pictures and sentences to unit vectors of one space, by name."""

from collections.abc import Callable

from transduce.catalogue import Catalogue
from transduce.encoders.encoder import Encoder, Identity
from transduce.encoders.preprocessing import Preprocessing
from transduce.errors import InvalidEncoder, UnknownName

__all__ = ["ENCODERS", "Encoder", "Identity", "Preprocessing", "load_encoder"]

BATCH_SIZE = 64
Loader = Callable[[str, bool, str, int], Encoder]


# Each loader imports its libraries only when called.
def _default(body: str, offline: bool, device: str, batch_size: int) -> Encoder:
    from transduce.encoders.shapes import load_default

    return load_default()


def _onnx(body: str, offline: bool, device: str, batch_size: int) -> Encoder:
    from transduce.encoders.onnx import OnnxEncoder

    return OnnxEncoder(body)


def _open_clip(body: str, offline: bool, device: str, batch_size: int) -> Encoder:
    from transduce.encoders.open_clip import load_open_clip

    return load_open_clip(body, offline=offline, device=device, batch_size=batch_size)


def _hugging_face(body: str, offline: bool, device: str, batch_size: int) -> Encoder:
    from transduce.encoders.hugging_face import load_hugging_face

    return load_hugging_face(body, offline=offline, device=device, batch_size=batch_size)


def _precomputed(body: str, offline: bool, device: str, batch_size: int) -> Encoder:
    from transduce.encoders.precomputed import load_precomputed

    return load_precomputed(body)


ENCODERS: Catalogue[Loader] = Catalogue(
    "encoder",
    {
        "default": _default,
        "hf": _hugging_face,
        "onnx": _onnx,
        "open_clip": _open_clip,
        "precomputed": _precomputed,
    },
)
EXAMPLES = {
    "hf": "hf:openai/clip-vit-base-patch32",
    "onnx": "onnx:DIR",
    "open_clip": "open_clip:ViT-B-32/openai",
    "precomputed": "precomputed:STORE",
}
# open_clip's own prefixes, and the names of the paper's backbones, mean open_clip.
OPEN_CLIP_STARTS = ("hf-hub:", "local-dir:", "ViT-", "RN50", "RN101")


def load_encoder(
    identifier: str, *, offline: bool = False, device: str = "cpu", batch_size: int = BATCH_SIZE
) -> Encoder:
    """The encoder of a name such as `default`, `onnx:DIR`, `open_clip:ViT-B-32/openai`,
    `hf:openai/clip-vit-base-patch32` or `precomputed:STORE`.

    `offline` downloads nothing; `device` and `batch_size` are for the encoders in torch.
    """
    if batch_size < 1:
        raise InvalidEncoder(f"Expected a batch size of at least 1, found {batch_size}.")
    if identifier.startswith(OPEN_CLIP_STARTS):
        identifier = f"open_clip:{identifier}"
    prefix, _, body = identifier.partition(":")
    if prefix.replace("-", "_") == "open_clip":
        prefix = "open_clip"
    if prefix not in ENCODERS:
        raise UnknownName("encoder (default, or PREFIX:NAME)", prefix, ENCODERS)
    if prefix != "default" and not body:
        raise InvalidEncoder(
            f"Expected a name after {prefix}:, found {identifier!r}; write it as in "
            f"{EXAMPLES[prefix]}."
        )
    return ENCODERS[prefix](body, offline, device, batch_size)
