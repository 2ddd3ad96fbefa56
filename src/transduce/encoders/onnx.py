"""`onnx:DIR`: an image tower and a text tower in onnxruntime, with tokenizer and settings.

The folder, format 1, as `transduce export-onnx` writes it and `OnnxEncoder` reads it:

    image.onnx       one input, any name: pixels, float32 [n, 3, size, size], preprocessed;
                     first output: embeddings, float32 [n, dimension], of any length
    text.onnx        input "tokens", int64 [n, context_length], padded with padding_id; and, only
                     where the model wants one, input "attention_mask", int64 [n, context_length],
                     1 for a token and 0 for padding;
                     first output: embeddings, float32 [n, dimension], of any length
    tokenizer.json   kind "tokenizers": the file of that name of Hugging Face's `tokenizers`, with
                     the model's text cleaning and special tokens in it (normalizer and
                     post-processor); truncation and padding are set from config.json.
                     Kind "words": the small word tokenizer of `tokenizers/words.py`
    config.json      {"format": 1,
                      "name": "open_clip:ViT-B-32/openai",
                      "dimension": 512,
                      "preprocessing": {"size": 224, "mean": [...], "std": [...],
                                        "interpolation": "bicubic", "resize": "shortest"},
                      "text": {"tokenizer": "tokenizers", "context_length": 77, "padding_id": 0}}

The batch axis n is dynamic. Weights too large for one file lie beside it as ONNX external data,
named after it ("image.onnx.data"). `OnnxConfig(...).write(folder)` writes config.json.

The identity is "onnx:" + the name in config.json and the hash of the towers, the tokenizer and
the text settings: a folder that moves stays the same encoder, a changed file makes another.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from transduce.encoders.encoder import Encoder, Identity, ImageRows, LoadSettings
from transduce.encoders.onnx_config import IMAGE_TOWER, TEXT_TOWER, OnnxConfig, hash_of
from transduce.encoders.onnx_session import open_session, scaled_to_unit
from transduce.encoders.preprocessing import Pixels, Preprocessing
from transduce.encoders.tokenizers import Tokenizer, load_tokenizer
from transduce.errors import InvalidEncoder

TEXTS_AT_ONCE = 256  # bounds the memory of a thousand classes times many templates


class OnnxEncoder(Encoder):
    """The encoder in a folder of the format above; each tower is loaded when first used."""

    def __init__(self, folder: Path | str, *, name: str | None = None, threads: int = 0) -> None:
        """`name` replaces "onnx:..." in the identity; with 0 threads onnxruntime decides."""
        self._folder = Path(folder)
        self._config = OnnxConfig.read(self._folder)
        self._name = name or f"onnx:{self._config.name}"
        self._threads = threads

    @cached_property
    def identity(self) -> Identity:
        """Name and hash of the files."""
        return Identity(
            encoder=self._name,
            weights=hash_of(self._folder, self._config),
            preprocessing=self.preprocessing.describe(),
            dimension=self._config.dimension,
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes the array that `embed_images` takes."""
        return self._config.preprocessing

    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Return a unit row for each preprocessed image."""
        pixels = self.preprocessing.checked(pixels, self._name)
        name = self._image_tower.get_inputs()[0].name
        return self._run(self._image_tower, {name: pixels}, len(pixels))

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Return a unit row for each sentence."""
        wanted = {entry.name for entry in self._text_tower.get_inputs()}
        parts = [np.zeros((0, self._config.dimension), np.float32)]
        for start in range(0, len(sentences), TEXTS_AT_ONCE):
            batch = sentences[start : start + TEXTS_AT_ONCE]
            tokens, mask = self._tokenizer.encode(batch)
            given = {"tokens": tokens, "attention_mask": mask}
            inputs = {key: value for key, value in given.items() if key in wanted}
            parts.append(self._run(self._text_tower, inputs, len(batch)))
        return np.concatenate(parts)

    @cached_property
    def _image_tower(self) -> Any:  # noqa: ANN401 (onnxruntime has no types)
        return open_session(self._folder / IMAGE_TOWER, self._name, self._threads)

    @cached_property
    def _text_tower(self) -> Any:  # noqa: ANN401
        tower = open_session(self._folder / TEXT_TOWER, self._name, self._threads)
        names = {entry.name for entry in tower.get_inputs()}
        if "tokens" not in names or names - {"tokens", "attention_mask"}:
            raise InvalidEncoder(
                f'Expected {TEXT_TOWER} in {self._folder} with inputs "tokens" and perhaps '
                f'"attention_mask", found {sorted(names)}; export the model again.'
            )
        return tower

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._folder, self._config.text)

    def _run(
        self,
        tower: Any,  # noqa: ANN401
        inputs: dict[str, np.ndarray],
        rows: int,
    ) -> Float32[np.ndarray, "row feature"]:
        dimension = self._config.dimension
        if rows == 0:
            return np.zeros((0, dimension), np.float32)
        raw = np.asarray(tower.run(None, inputs)[0], np.float32)
        if raw.shape != (rows, dimension):
            raise InvalidEncoder(
                f"Expected embeddings of shape {(rows, dimension)} from {self._folder}, found "
                f"{raw.shape}; config.json and the towers disagree, export the model again."
            )
        return scaled_to_unit(raw)


def load_onnx(name: str, settings: LoadSettings) -> OnnxEncoder:
    """Return the encoder in the folder `name`."""
    return OnnxEncoder(name)
