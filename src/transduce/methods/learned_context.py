"""The context vectors that CoOp learnt: a value that can be saved, loaded and applied."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32

from transduce.errors import InvalidFile, InvalidSetting, MissingExtra
from transduce.methods.prototypes import directions
from transduce.methods.text_tower import TextTower, encode_vectors, fingerprint, torch
from transduce.simplex.probabilities import softmax

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = "transduce.coop-context.1"


@dataclass(frozen=True)
class LearnedContext:
    """`vectors` stand before the class name: (token, width) for all classes, or one set each."""

    vectors: Float32[np.ndarray, "*class token width"]
    class_names: tuple[str, ...]
    tower: str  # fingerprint of the tower that they were learnt through

    def save(self, path: str | Path) -> None:
        """Write a safetensors file; what the vectors belong to is in its metadata."""
        try:
            from safetensors.numpy import save_file
        except ImportError:
            raise MissingExtra("Saving a context", "torch") from None
        metadata = {
            "format": FORMAT,
            "class_names": json.dumps(self.class_names),
            "tower": self.tower,
        }
        save_file({"context": np.ascontiguousarray(self.vectors)}, path, metadata)

    @classmethod
    def load(cls, path: str | Path) -> "LearnedContext":
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError:
            raise MissingExtra("Loading a context", "torch") from None
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                found = metadata.get("format", "no format in its metadata")
                if found != FORMAT or list(file.keys()) != ["context"]:
                    raise InvalidFile(
                        f"Expected a CoOp context ({FORMAT}) in {path}, found {found}."
                    )
                vectors = file.get_tensor("context")
        except SafetensorError as error:
            raise InvalidFile(
                f"Expected a safetensors file in {path}, found {error}; give what "
                "LearnedContext.save wrote."
            ) from None
        names = tuple(json.loads(metadata["class_names"]))
        return cls(vectors.astype(np.float32, copy=False), names, metadata["tower"])

    def classifier(
        self, tower: TextTower, class_names: tuple[str, ...] | None = None
    ) -> "PromptClassifier":
        """Apply the context; vectors common to all classes may go before other names too."""
        names = self.class_names if class_names is None else tuple(class_names)
        if self.vectors.ndim == 3 and names != self.class_names:
            raise InvalidSetting(
                "Expected the class names the class-specific context was learnt for, found others;"
                " learn a context common to all classes to carry it over."
            )
        found = fingerprint(tower)
        if found != self.tower:
            raise InvalidSetting(
                f"Expected the text tower the context was learnt through ({self.tower}), found "
                f"another one ({found}); load the same model."
            )
        prompts = Prompts(tower, names, self.vectors.shape[-2])
        with torch().no_grad():
            features = prompts.encode(torch().tensor(self.vectors))
        classes = features.double().cpu().numpy()
        return PromptClassifier(directions(classes), tower.scale, self)


@dataclass(frozen=True)
class PromptClassifier:
    """softmax(scale cos(image, learnt prompt of the class)), one image at a time."""

    classes: Float[np.ndarray, "class feature"]
    scale: float
    context: LearnedContext

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        unit = directions(np.asarray(rows, dtype=float))
        return softmax(self.scale * (unit @ self.classes.T))


class Prompts:
    """Sentences "[context] name." of every class, ready to be encoded with any context."""

    def __init__(self, tower: TextTower, names: tuple[str, ...], n_tokens: int) -> None:
        self._tower, self._n_tokens = tower, n_tokens
        sentences = [f"{name.replace('_', ' ')}." for name in names]
        rows = []
        for name, tokens in zip(names, tower.tokenise(sentences), strict=True):
            # The places of the context hold an ordinary word, so that no end mark is seen early.
            rows.append([tokens[0], *[tokens[1]] * n_tokens, *tokens[1:]])
            if len(rows[-1]) > tower.longest:
                raise InvalidSetting(
                    f"Expected a prompt of at most {tower.longest} tokens, found {len(rows[-1])} "
                    f"for {name!r}; shorten the name, or lower context_length."
                )
        self._tokens = tower.pad(rows)
        with torch().no_grad():
            self._words = tower.token_embedding(self._tokens)

    @property
    def width(self) -> int:
        return int(self._words.shape[-1])

    def encode(self, context: "Tensor") -> "Tensor":
        """Text features (class, feature) for context vectors (token, width), or one set each."""
        context = context.to(self._words)
        if context.ndim == 2:
            context = context.expand(len(self._words), -1, -1)
        after = 1 + self._n_tokens
        vectors = torch().cat([self._words[:, :1], context, self._words[:, after:]], dim=1)
        return encode_vectors(self._tower, self._tokens, vectors)
