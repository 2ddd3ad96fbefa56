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

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from transduce.encoders.encoder import (
    Encoder,
    Identity,
    ImageRows,
    LoadSettings,
    Pixels,
    Preprocessing,
)
from transduce.encoders.tokenizers import TOKENIZER, TextSettings, Tokenizer, load_tokenizer
from transduce.errors import InvalidEncoder, MissingExtra
from transduce.machine.atomic import read_json

FORMAT = 1
CONFIG = "config.json"
IMAGE_TOWER = "image.onnx"
TEXT_TOWER = "text.onnx"
TEXTS_AT_ONCE = 256  # bounds the memory of a thousand classes times many templates
PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
SHAPES = "shapes"
SHAPES_FOLDER = Path(__file__).parent / "embedded"


@dataclass(frozen=True, slots=True)
class OnnxConfig:
    """The contents of config.json; `name` says which model the towers were made from."""

    name: str
    dimension: int
    preprocessing: Preprocessing
    text: TextSettings

    def write(self, folder: Path) -> None:
        """Write config.json."""
        contents = {"format": FORMAT, **asdict(self)}
        (folder / CONFIG).write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "OnnxConfig":
        """Read config.json of a folder that has all its files."""
        for file in (CONFIG, IMAGE_TOWER, TEXT_TOWER, TOKENIZER):
            if not (folder / file).is_file():
                what = "no such file" if folder.is_dir() else "no such folder"
                raise InvalidEncoder(
                    f"Expected an ONNX encoder in {folder} ({CONFIG}, {IMAGE_TOWER}, {TEXT_TOWER}, "
                    f"{TOKENIZER}), found {what}: {folder / file if folder.is_dir() else folder}; "
                    "make one with: transduce export-onnx"
                )
        path = folder / CONFIG
        raw = read_json(path, _Raw, error=InvalidEncoder)
        if raw.format != FORMAT:
            raise InvalidEncoder(
                f"Expected format {FORMAT} in {path}, found {raw.format!r}; export the model "
                "again, or use the version of transduce that wrote it."
            )
        for name in ("mean", "std"):  # CLIP's would be silently wrong for another model
            if name not in raw.preprocessing:
                raise InvalidEncoder(
                    f"Expected preprocessing.{name} in {path}, found none; export the model again."
                )
        return read_json(path, cls, error=InvalidEncoder)


@dataclass(frozen=True, slots=True)
class _Raw:
    """The fields of config.json that are checked before defaults are filled in."""

    format: Any = None
    preprocessing: dict[str, Any] = field(default_factory=dict)


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


def load_shapes(
    name: str = SHAPES, settings: LoadSettings | None = None, *, threads: int = 0
) -> OnnxEncoder:
    """Return the encoder `shapes`, which comes with the library: a small CLIP of a drawn world.

    It needs no download and knows nothing but `transduce.benchmark.synthetic`: other words are
    refused. embedded/CARD.md says what it was trained on and how well it does. With 0 threads
    onnxruntime decides how many to use.
    """
    return OnnxEncoder(SHAPES_FOLDER, name=name or SHAPES, threads=threads)


def hash_of(folder: Path, config: OnnxConfig) -> str:
    """Return a SHA-256 over all that decides an embedding besides the preprocessing."""
    digest = hashlib.sha256(json.dumps(asdict(config.text), sort_keys=True).encode())
    towers = {path for tower in (IMAGE_TOWER, TEXT_TOWER) for path in folder.glob(f"{tower}*")}
    for path in [*sorted(towers), folder / TOKENIZER]:
        with path.open("rb") as file:
            digest.update(path.name.encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{digest.hexdigest()}"


def open_session(path: Path, encoder: str, threads: int = 0) -> Any:  # noqa: ANN401 (no types)
    """Return an onnxruntime session of the model at `path`; with 0 threads it decides."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra(f"The encoder {encoder}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # its warnings are about graphs, for their makers
    available = onnxruntime.get_available_providers()
    providers = [provider for provider in PROVIDERS if provider in available]
    try:
        return onnxruntime.InferenceSession(str(path), options, providers)
    except Exception as error:  # onnxruntime's errors share no public type
        reason = str(error).splitlines()[0]
        raise InvalidEncoder(
            f"Expected a model that onnxruntime can load in {path}, found: {reason}; "
            "export it again."
        ) from error


def scaled_to_unit(rows: Float32[np.ndarray, "row feature"]) -> Float32[np.ndarray, "row feature"]:
    """Return rows of length 1; zeros pass, and `embed` counts such images as skipped."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, np.finfo(np.float32).tiny)
