"""What encoders in torch share: two towers run in batches, and a hash of their weights."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64

from transduce.encoders.diagnostics import is_out_of_memory, out_of_memory_advice
from transduce.encoders.encoder import Encoder, Identity, ImageRows, Pixels, Preprocessing
from transduce.errors import EncoderUnavailable

Tensor = Any  # torch is an extra: its types are not known to those who do not have it
Module = Any


@dataclass(frozen=True)
class TextInput:
    """How sentences become token ids, for this process and, exported, for others."""

    tokenize: Callable[[Sequence[str]], Int64[np.ndarray, "text token"]]
    context_length: int
    padding_id: int
    portable: Callable[[], Any]  # the same as a `tokenizers.Tokenizer`


@dataclass(frozen=True)
class TorchEncoder:
    """An encoder whose towers are functions of one torch module, float32 and in eval mode."""

    name: str
    model: Module
    image_tower: Callable[[Tensor], Tensor]
    text_tower: Callable[[Tensor], Tensor]
    text_input: TextInput
    preprocessing: Preprocessing
    settings: Mapping[str, Any]  # what the weights do not tell: activation, heads, pooling
    device: str = "cpu"
    batch_size: int = 64

    embed_classes = Encoder.embed_classes

    @cached_property
    def identity(self) -> Identity:
        """Name and hash of the weights."""
        return Identity(
            encoder=self.name,
            weights=hash_of_weights(self.model.state_dict(), self.settings),
            preprocessing=self.preprocessing.describe(),
            dimension=self._dimension,
        )

    def embed_images(self, pixels: Pixels) -> ImageRows:
        """Return a unit row for each preprocessed image."""
        return self._run(self.image_tower, self.preprocessing.checked(pixels, self.name), "images")

    def embed_texts(self, sentences: Sequence[str]) -> Float32[np.ndarray, "text feature"]:
        """Return a unit row for each sentence."""
        tokens = self.text_input.tokenize(sentences) if sentences else np.zeros((0, 1), np.int64)
        return self._run(self.text_tower, tokens, "sentences")

    @cached_property
    def _dimension(self) -> int:
        tokens = self.text_input.tokenize([""])
        return int(self._run(self.text_tower, tokens, "sentences").shape[1])

    def _run(
        self, tower: Callable[[Tensor], Tensor], inputs: np.ndarray, what: str
    ) -> Float32[np.ndarray, "row feature"]:
        import torch

        if len(inputs) == 0:
            return np.zeros((0, self._dimension), np.float32)
        parts = []
        with torch.inference_mode():
            for start in range(0, len(inputs), self.batch_size):
                batch = np.ascontiguousarray(inputs[start : start + self.batch_size])
                with out_of_memory_advice(len(batch), what, self.device):
                    raw = tower(torch.from_numpy(batch).to(self.device)).float()
                    parts.append(torch.nn.functional.normalize(raw, dim=-1).cpu().numpy())
        return np.concatenate(parts)


def ready(model: Module, device: str) -> Module:
    """Return the model in eval mode (batch norm fixed, no dropout), in float32, on `device`."""
    try:
        return model.eval().requires_grad_(False).float().to(device)
    except (RuntimeError, AssertionError) as error:
        if is_out_of_memory(error):
            raise
        raise EncoderUnavailable(
            f"Expected a device that torch can use, found {device!r}: "
            f"{str(error).splitlines()[0]}; use --device cpu."
        ) from error


def hash_of_weights(state: Mapping[str, Tensor], settings: Mapping[str, Any]) -> str:
    """Return a SHA-256 over every tensor, by name, and the settings of the computation."""
    import torch

    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode())
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return f"sha256:{digest.hexdigest()}"
