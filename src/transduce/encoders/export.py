"""Export an open_clip or Hugging Face encoder to a folder for `onnx:`, and check it.

The folder appears only when its tokenizer gives the same ids and its towers the same embeddings
as the model it was made from.
"""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transduce.encoders.onnx import (
    CONFIG,
    IMAGE_TOWER,
    TEXT_TOWER,
    OnnxConfig,
    OnnxEncoder,
)
from transduce.encoders.tokenizers import TOKENIZER, TextSettings, load_tokenizer
from transduce.encoders.torch_towers import Tensor, TorchEncoder
from transduce.errors import InvalidEncoder, InvalidSetting, MissingExtra

TOLERANCE = 1e-4  # on unit vectors; float32 in another order of operations gives about 1e-6
ONE_FILE_BYTES = 1_500_000_000  # an ONNX file ends at 2 GB; larger weights go beside it
PROBES = (
    "a photo of a cat.",
    "A Photo, of a   CAFÉ!",
    "don't: it's 3.14 x 42 — 日本語 & “quotes”",
    "",
    "a very long sentence that goes on " * 40,
)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and how far its embeddings are from the model's at most."""

    folder: Path
    identity: str
    image_difference: float
    text_difference: float
    megabytes: float


def export_onnx(encoder: TorchEncoder, folder: Path | str, *, replace: bool = False) -> Exported:
    """Write `encoder` to `folder`; an existing folder is refused unless `replace`."""
    folder = Path(folder)
    refuse_existing_export(folder, replace=replace)
    _require_exporter()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        draft = Path(scratch) / "draft"
        draft.mkdir()
        _write(encoder, draft)
        exported = _checked(encoder, draft, folder)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    return exported


def refuse_existing_export(folder: Path, *, replace: bool) -> None:
    """Raise unless `folder` is new, or was exported before and `replace` is set."""
    if not folder.exists():
        return
    if not replace:
        raise InvalidSetting(
            f"Expected a new folder to write to, found {folder}; choose another, or use --replace."
        )
    others = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    others -= {CONFIG, IMAGE_TOWER, TEXT_TOWER, TOKENIZER}
    others = {name for name in others if not name.endswith(".onnx.data")}
    if others:
        raise InvalidSetting(
            f"Expected an exported model to replace in {folder}, found {sorted(others)[0]!r}; "
            "choose another folder."
        )


def _write(encoder: TorchEncoder, folder: Path) -> None:
    import torch

    size, text = encoder.preprocessing.size, encoder.text_input
    encoder.text_input.portable().save(str(folder / TOKENIZER))
    settings = TextSettings("tokenizers", text.context_length, text.padding_id)
    config = OnnxConfig(encoder.name, encoder.identity.dimension, encoder.preprocessing, settings)
    config.write(folder)
    _same_ids(encoder, folder, settings)  # before the slow part
    images = torch.zeros(2, 3, size, size, device=encoder.device)
    _export_tower(encoder, encoder.image_tower, images, "pixels", folder / IMAGE_TOWER)
    sentences = torch.from_numpy(text.tokenize(["a", "b"])).to(encoder.device)
    _export_tower(encoder, encoder.text_tower, sentences, "tokens", folder / TEXT_TOWER)


def _export_tower(
    encoder: TorchEncoder,
    tower: Callable[[Tensor], Tensor],
    example: Tensor,
    input_name: str,
    path: Path,
) -> None:
    import torch

    class Tower(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = encoder.model

        def forward(self, inputs: Tensor) -> Tensor:
            return tower(inputs)

    bytes_of_weights = sum(value.nbytes for value in encoder.model.state_dict().values())
    with _quiet():
        torch.onnx.export(
            Tower().eval(),
            (example,),
            str(path),
            input_names=[input_name],
            output_names=["embeddings"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            dynamo=True,
            external_data=bytes_of_weights > ONE_FILE_BYTES,
            verbose=False,
        )


def _same_ids(encoder: TorchEncoder, folder: Path, settings: TextSettings) -> None:
    ids, _ = load_tokenizer(folder, settings).encode(PROBES)
    expected = encoder.text_input.tokenize(PROBES)
    for sentence, row, wanted in zip(PROBES, ids, expected, strict=True):
        if not np.array_equal(row, wanted):
            raise InvalidEncoder(
                f"Expected the exported tokenizer of {encoder.name} to give its ids, found other "
                f"ones for {sentence[:60]!r}; use the model without exporting it."
            )


def _checked(encoder: TorchEncoder, draft: Path, folder: Path) -> Exported:
    exported = OnnxEncoder(draft)
    size = encoder.preprocessing.size
    pixels = np.random.default_rng(0).standard_normal((3, 3, size, size), dtype=np.float32)
    differences = {
        "image": np.abs(exported.embed_images(pixels) - encoder.embed_images(pixels)).max(),
        "text": np.abs(exported.embed_texts(PROBES) - encoder.embed_texts(PROBES)).max(),
    }
    for tower, difference in differences.items():
        if not difference <= TOLERANCE:  # NaN too
            raise InvalidEncoder(
                f"Expected the exported {tower} tower of {encoder.name} within {TOLERANCE} of the "
                f"model, found a difference of {difference:.2g}; use the model without exporting."
            )
    size_on_disk = sum(path.stat().st_size for path in draft.iterdir())
    return Exported(
        folder=folder,
        identity=exported.identity.encoder,
        image_difference=float(differences["image"]),
        text_difference=float(differences["text"]),
        megabytes=size_on_disk / 1e6,
    )


def _require_exporter() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
        import tokenizers  # noqa: F401
    except ImportError:
        raise MissingExtra("Exporting to ONNX", "export") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's own deprecations; a failed export still raises."""
    import logging

    loggers: list[Any] = [logging.getLogger(name) for name in ("onnxscript", "torch.onnx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
