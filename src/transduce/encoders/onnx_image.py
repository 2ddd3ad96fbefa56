"""`dinov2` and `onnx-image:DIR`: an image tower in onnxruntime, without words.

The layout is that of the ONNX repositories on the Hugging Face hub:

    onnx/model.onnx            (or model.onnx) one image input, float32 [n, 3, size, size]; output
                               `last_hidden_state` [n, token, dimension], whose first token is the
                               image, or any first output [n, dimension]
    preprocessor_config.json   sizes, interpolation, mean and deviation, as transformers writes it

Such an encoder cannot name classes; it is the view of a task, beside an encoder that can.
"""

import hashlib
from collections.abc import Sequence
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
    no_text,
)
from transduce.encoders.hub import HubModel, fetch_hub_model
from transduce.encoders.onnx import open_session, scaled_to_unit
from transduce.encoders.preprocessor_config import preprocessing_from_config
from transduce.errors import InvalidEncoder
from transduce.machine.atomic import read_json

PREPROCESSOR = "preprocessor_config.json"
TOWERS = ("onnx/model.onnx", "model.onnx")
TOKENS = "last_hidden_state"


class OnnxImageEncoder(Encoder):
    """Embeds images by one ONNX model; the model is loaded when first used."""

    def __init__(
        self, tower: Path, preprocessor: Path, *, name: str, origin: str = "", threads: int = 0
    ) -> None:
        """`name` and `origin` are for the identity; with 0 threads onnxruntime decides."""
        self._tower_path = tower
        self._name = name
        self._origin = origin
        self._threads = threads
        settings = read_json(preprocessor, dict[str, Any], error=InvalidEncoder)
        self._preprocessing = preprocessing_from_config(settings, "image", name)

    @cached_property
    def identity(self) -> Identity:
        """Name and hash of the model."""
        digest = hashlib.sha256()
        for path in sorted(self._tower_path.parent.glob(f"{self._tower_path.name}*")):
            with path.open("rb") as file:  # weights may lie beside it: model.onnx_data
                digest.update(path.name.encode())
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return Identity(
            encoder=self._name,
            weights=f"sha256:{digest.hexdigest()}",
            preprocessing=self.preprocessing.describe(),
            dimension=self._dimension,
            origin=self._origin,
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes the array that `embed_images` takes."""
        return self._preprocessing

    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Return a unit row for each preprocessed image."""
        pixels = self.preprocessing.checked(pixels, self._name)
        return self._run(pixels) if len(pixels) else np.zeros((0, self._dimension), np.float32)

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Raise `InvalidEncoder`: there is no text tower."""
        raise no_text(self._name)

    @cached_property
    def _tower(self) -> Any:  # noqa: ANN401 (onnxruntime has no types)
        tower = open_session(self._tower_path, self._name, self._threads)
        inputs = [entry.name for entry in tower.get_inputs()]
        if len(inputs) != 1:
            raise InvalidEncoder(
                f"Expected one input, the image, in {self._tower_path}, found {inputs}; take the "
                "file of the image tower alone."
            )
        return tower

    @cached_property
    def _dimension(self) -> int:
        """The width of an embedding: of an empty image, where the graph does not state it."""
        size = self.preprocessing.size
        return int(self._run(np.zeros((1, 3, size, size), np.float32)).shape[1])

    def _run(
        self, pixels: Float32[np.ndarray, "image 3 height width"]
    ) -> Float32[np.ndarray, "image feature"]:
        outputs = [entry.name for entry in self._tower.get_outputs()]
        wanted = TOKENS if TOKENS in outputs else outputs[0]
        image = self._tower.get_inputs()[0].name
        raw = np.asarray(self._tower.run([wanted], {image: pixels})[0], np.float32)
        rows = raw[:, 0] if raw.ndim == 3 else raw
        if rows.ndim != 2 or len(rows) != len(pixels):
            raise InvalidEncoder(
                f"Expected {wanted} of {self._tower_path} to be [n, token, dimension] or "
                f"[n, dimension], found {raw.shape} for {len(pixels)} images; take another model."
            )
        return scaled_to_unit(rows)


def load_onnx_image(name: str, settings: LoadSettings) -> OnnxImageEncoder:
    """Return the encoder in the folder `name`, known by its absolute path."""
    folder = Path(name).expanduser().absolute()
    towers = [folder / tower for tower in TOWERS if (folder / tower).is_file()]
    if not towers or not (folder / PREPROCESSOR).is_file():
        raise InvalidEncoder(
            f"Expected an image tower in {folder} ({' or '.join(TOWERS)}, and {PREPROCESSOR}), "
            "found none; download one, such as: hf download onnx-community/dinov2-small "
            f"--local-dir {name}"
        )
    return OnnxImageEncoder(towers[0], folder / PREPROCESSOR, name=f"onnx-image:{folder}")


def load_hub_image(model: HubModel, settings: LoadSettings) -> OnnxImageEncoder:
    """Return the encoder of a pinned repository, downloaded if it is not in the cache."""
    fetched = fetch_hub_model(model, offline=settings.offline, bar=settings.bar)
    paths = fetched.paths
    tower = next(file for file in paths if file.endswith(".onnx"))
    return OnnxImageEncoder(
        paths[tower], paths[PREPROCESSOR], name=model.name, origin=fetched.origin
    )
