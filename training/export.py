"""Export the trained towers as an `onnx:` folder."""

from pathlib import Path

import torch
from torch import nn

from training.drawn import PREPROCESSING
from training.towers import ImageTower, TextTower
from transduce.encoders.onnx import (
    IMAGE_TOWER,
    TEXT_TOWER,
    OnnxConfig,
)
from transduce.encoders.tokenizers import TOKENIZER, TextSettings
from transduce.encoders.tokenizers.words import WordTokenizer

NAME = "drawn-world"


def export(
    folder: Path, images: ImageTower, texts: TextTower, tokenizer: WordTokenizer, dimension: int
) -> None:
    """Write both towers, the tokenizer and the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    size = PREPROCESSING.size
    pixels = torch.zeros(2, 3, size, size)
    _export(images, pixels, "pixels", folder / IMAGE_TOWER)
    tokens = torch.ones(2, tokenizer.context_length, dtype=torch.int64)
    _export(texts, tokens, "tokens", folder / TEXT_TOWER)
    tokenizer.write(folder / TOKENIZER)
    text = TextSettings(tokenizer="words", context_length=tokenizer.context_length)
    OnnxConfig(NAME, dimension, PREPROCESSING, text).write(folder)


def _export(tower: nn.Module, example: torch.Tensor, name: str, path: Path) -> None:
    tower = tower.to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]
    torch.onnx.export(
        tower,
        (example,),
        path,
        input_names=[name],
        output_names=["embeddings"],
        dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
