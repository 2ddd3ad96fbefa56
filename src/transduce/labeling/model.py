"""What the method learnt of each batch, in safetensors."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from transduce.atomic import replace_file
from transduce.errors import InvalidRun
from transduce.methods.mixture import MixtureModel

FORMAT = "transduce-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBatch:
    """The classes of one batch as the mixture ended: enough to label a new image with them."""

    parameters: np.ndarray
    log_prior: np.ndarray
    class_of_cluster: np.ndarray

    @classmethod
    def of(cls, model: object) -> "FittedBatch | None":
        if not isinstance(model, MixtureModel):
            return None
        return cls(
            parameters=model.parameters,
            log_prior=model.log_prior,
            class_of_cluster=model.class_of_cluster,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModels:
    """The classes as the text tower gave them, the shots, and the fit of each batch."""

    method: str
    temperature: float
    class_embeddings: Float32[np.ndarray, "class feature"]
    support_embeddings: Float32[np.ndarray, "shot feature"] | None = None
    support_labels: Int[np.ndarray, " shot"] | None = None
    batches: tuple[FittedBatch, ...] = ()

    def write(self, path: Path) -> None:
        from safetensors.numpy import save_file

        arrays = {"class_embeddings": self.class_embeddings}
        if self.support_embeddings is not None and self.support_labels is not None:
            arrays["support_embeddings"] = self.support_embeddings
            arrays["support_labels"] = self.support_labels
        for number, batch in enumerate(self.batches):
            for name in FittedBatch.__slots__:
                arrays[f"batch_{number}.{name}"] = getattr(batch, name)
        about = {"format": FORMAT, "method": self.method, "temperature": repr(self.temperature)}
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        replace_file(path, lambda temporary: save_file(arrays, temporary, metadata=about))

    @classmethod
    def read(cls, path: Path) -> "BatchModels":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, json.JSONDecodeError) as error:
            raise InvalidRun(f"Expected a model at {path}, found {error}.") from None
        if about.get("format") != FORMAT:
            raise InvalidRun(f"Expected a {FORMAT} file, found another at {path}.")
        return cls(
            method=about["method"],
            temperature=float(about["temperature"]),
            class_embeddings=arrays["class_embeddings"],
            support_embeddings=arrays.get("support_embeddings"),
            support_labels=arrays.get("support_labels"),
            batches=_batches(arrays),
        )


def _batches(arrays: dict[str, np.ndarray]) -> tuple[FittedBatch, ...]:
    batches: list[FittedBatch] = []
    while f"batch_{len(batches)}.parameters" in arrays:
        names = {name: f"batch_{len(batches)}.{name}" for name in FittedBatch.__slots__}
        batches.append(FittedBatch(**{name: arrays[key] for name, key in names.items()}))
    return tuple(batches)
