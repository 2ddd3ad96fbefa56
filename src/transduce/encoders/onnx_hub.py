"""`clip`, `clip-q8` and `onnx-hub:ORG/NAME`: CLIP and SigLIP from the hub, in onnxruntime alone.

The layout is that of the ONNX repositories on the Hugging Face hub that have the two towers apart:

    onnx/vision_model.onnx     input pixel_values, float32 [n, 3, size, size];
                               output image_embeds, or pooler_output (SigLIP), [n, dimension]
    onnx/text_model.onnx       input input_ids, int64 [n, token], and perhaps attention_mask;
                               output text_embeds, or pooler_output (SigLIP), [n, dimension]
    tokenizer.json             of Hugging Face's `tokenizers`
    preprocessor_config.json   sizes, interpolation, mean and deviation
    config.json                the family (model_type) and the longest sentence
    tokenizer_config.json      if there is one: the word that fills up a sentence

CLIP reads a sentence up to its end and no further: sentences are padded to the longest of a batch.
SigLIP was trained on sentences of one length, 64: all are padded to that, in small letters.
"""

import hashlib
from collections.abc import Mapping, Sequence
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
from transduce.encoders.hub import HubFiles, HubModel, fetch_hub_model
from transduce.encoders.hub_cache import REVISION
from transduce.encoders.onnx import open_session, scaled_to_unit
from transduce.encoders.preprocessor_config import preprocessing_from_config
from transduce.encoders.tokenizers.hub_texts import HubTokenizer
from transduce.errors import InvalidEncoder
from transduce.machine.atomic import read_json

VISION, TEXT = "onnx/vision_model", "onnx/text_model"  # and a suffix, such as _quantized
TOKENIZER, PREPROCESSOR, CONFIG = "tokenizer.json", "preprocessor_config.json", "config.json"
WORDS = "tokenizer_config.json"
IMAGE_OUTPUTS = ("image_embeds", "pooler_output")
TEXT_OUTPUTS = ("text_embeds", "pooler_output")
TEXTS_AT_ONCE = 64  # bounds the memory of a thousand classes times many templates


class OnnxHubEncoder(Encoder):
    """Both towers of a repository of the layout above; each is loaded when first used."""

    def __init__(self, fetched: HubFiles, *, name: str, threads: int = 0) -> None:
        """`name` is for the identity; with 0 threads onnxruntime decides."""
        files = fetched.paths
        self._name = name
        self._fetched = fetched
        self._threads = threads
        self._vision_path = _only(files, VISION)
        self._text_path = _only(files, TEXT)
        self._tokenizer_path = files[TOKENIZER]
        self._config = read_json(files[CONFIG], dict[str, Any], error=InvalidEncoder)
        self._words = (
            read_json(files[WORDS], dict[str, Any], error=InvalidEncoder) if WORDS in files else {}
        )
        settings = read_json(files[PREPROCESSOR], dict[str, Any], error=InvalidEncoder)
        family = _family(self._config)
        self._preprocessing = preprocessing_from_config(settings, family or "image", name)

    @cached_property
    def identity(self) -> Identity:
        """Name and hash of the files; the text tower is not loaded for it."""
        digest = hashlib.sha256()
        for name, known in sorted(self._fetched.digests.items()):
            if name != PREPROCESSOR:  # it is in `preprocessing`
                digest.update(f"{name} {known}\n".encode())
        return Identity(
            encoder=self._name,
            weights=f"sha256:{digest.hexdigest()}",
            preprocessing=self.preprocessing.describe(),
            dimension=self._dimension,
            origin=self._fetched.origin,
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes the array that `embed_images` takes."""
        return self._preprocessing

    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Return a unit row for each preprocessed image."""
        pixels = self.preprocessing.checked(pixels, self._name)
        if not len(pixels):
            return np.zeros((0, self._dimension), np.float32)
        name = self._vision.get_inputs()[0].name
        return self._run(self._vision, self._vision_path, IMAGE_OUTPUTS, {name: pixels})

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Return a unit row for each sentence."""
        parts = [np.zeros((0, self._dimension), np.float32)]
        inputs = {entry.name for entry in self._text.get_inputs()}
        for start in range(0, len(sentences), TEXTS_AT_ONCE):
            tokens, mask = self._tokenizer.encode(sentences[start : start + TEXTS_AT_ONCE])
            given = {"input_ids": tokens, "attention_mask": mask}
            wanted = {name: value for name, value in given.items() if name in inputs}
            parts.append(self._run(self._text, self._text_path, TEXT_OUTPUTS, wanted))
        return np.concatenate(parts)

    @cached_property
    def _vision(self) -> Any:  # noqa: ANN401 (onnxruntime has no types)
        tower = open_session(self._vision_path, self._name, self._threads)
        _check_inputs(tower, self._vision_path, {"pixel_values"})
        return tower

    @cached_property
    def _text(self) -> Any:  # noqa: ANN401
        tower = open_session(self._text_path, self._name, self._threads)
        _check_inputs(tower, self._text_path, {"input_ids", "attention_mask"})
        return tower

    @cached_property
    def _tokenizer(self) -> HubTokenizer:
        shape = next(entry.shape for entry in self._text.get_inputs() if entry.name == "input_ids")
        fixed = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None
        return HubTokenizer.read(
            self._tokenizer_path,
            self._config,
            family=_family(self._config),
            length=fixed,
            words=self._words,
        )

    @cached_property
    def _dimension(self) -> int:
        """The width of an embedding: of an empty image, where the graph does not state it."""
        size = self.preprocessing.size
        return int(self.embed_images(np.zeros((1, 3, size, size), np.float32)).shape[1])

    def _run(
        self,
        tower: Any,  # noqa: ANN401
        path: Path,
        outputs: Sequence[str],
        inputs: dict[str, np.ndarray],
    ) -> Float32[np.ndarray, "row feature"]:
        names = [entry.name for entry in tower.get_outputs()]
        wanted = next((name for name in outputs if name in names), None)
        if wanted is None:
            raise InvalidEncoder(
                f"Expected an output {' or '.join(outputs)} in {path}, found {names}; choose "
                "another model."
            )
        rows = np.asarray(tower.run([wanted], inputs)[0], np.float32)
        if rows.ndim != 2 or len(rows) != len(next(iter(inputs.values()))):
            raise InvalidEncoder(
                f"Expected {wanted} of {path} to be [n, dimension], found {rows.shape}; choose "
                "another model."
            )
        return scaled_to_unit(rows)


def load_onnx_hub(model: HubModel, settings: LoadSettings) -> OnnxHubEncoder:
    """Return the encoder of a pinned repository, downloaded if it is not in the cache."""
    fetched = fetch_hub_model(model, offline=settings.offline, bar=settings.bar)
    return OnnxHubEncoder(fetched, name=model.name)


def hub_model_of(name: str) -> HubModel:
    """Return the model that `onnx-hub:` + `name` names: ORG/NAME, and perhaps @REVISION."""
    repository, _, revision = name.partition("@")
    if revision and (not REVISION.fullmatch(revision) or ".." in revision):
        raise InvalidEncoder(
            f"Expected a branch, tag or commit after @, found {revision!r} in onnx-hub:{name}."
        )
    towers = (f"{VISION}.onnx", f"{TEXT}.onnx")
    return HubModel(
        name=f"onnx-hub:{name}",
        repository=repository,
        revision=revision or "main",
        files=dict.fromkeys([*towers, TOKENIZER, PREPROCESSOR, CONFIG], ""),
        optional=(WORDS, *(f"{tower}_data" for tower in towers)),  # weights beyond two gigabytes
    )


def load_any_onnx_hub(name: str, settings: LoadSettings) -> OnnxHubEncoder:
    """Return the encoder that `onnx-hub:` + `name` names.

    Once in the cache it is taken from there, whatever the hub has meanwhile: `transduce download`
    looks again.
    """
    return load_onnx_hub(hub_model_of(name), settings)


def _family(config: Mapping[str, Any]) -> str | None:
    """Return "clip", "siglip" or None by the model_type of a config.json."""
    kind = str(config.get("model_type", ""))
    return next((family for family in ("siglip", "clip") if kind.startswith(family)), None)


def _only(files: Mapping[str, Path], start: str) -> Path:
    return next(path for name, path in files.items() if name.startswith(start))


def _check_inputs(tower: Any, path: Path, known: set[str]) -> None:  # noqa: ANN401
    names = {entry.name for entry in tower.get_inputs()}
    if not names or names - known:
        raise InvalidEncoder(
            f"Expected inputs {' and '.join(sorted(known))} in {path}, found {sorted(names)}; "
            "choose another model."
        )
