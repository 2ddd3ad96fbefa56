"""The context vectors that CoOp learned, and the classifier they make with a text tower."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32

from transduce.errors import InvalidSetting
from transduce.methods.method import RowProbabilities, Rows
from transduce.methods.prototypes import directions
from transduce.methods.text_tower import TextTower, encode_vectors, torch, tower_fingerprint
from transduce.simplex.probabilities import softmax

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LearnedContext:
    """Learned word vectors that stand before a class name.

    `transduce.encoders.context_files` writes them to a file and reads them back.

    Parameters
    ----------
    vectors : float32 array of shape (token, width) or (class, token, width)
        Common to all classes, or a set for each class.
    class_names : tuple of str
        The classes they were learned for.
    tower : str
        Fingerprint of the text tower they were learned through.
    """

    vectors: Float32[np.ndarray, "*class token width"]
    class_names: tuple[str, ...]
    tower: str

    def classifier(
        self, tower: TextTower, class_names: tuple[str, ...] | None = None
    ) -> "PromptClassifier":
        """Return the classifier of these or, with vectors common to all classes, of other names."""
        names = self.class_names if class_names is None else tuple(class_names)
        if self.vectors.ndim == 3 and names != self.class_names:
            raise InvalidSetting(
                "Expected the class names the class-specific context was learned for, found others;"
                " learn a context common to all classes to carry it over."
            )
        fingerprint = tower_fingerprint(tower)
        if fingerprint != self.tower:
            raise InvalidSetting(
                f"Expected the text tower the context was learned through ({self.tower}), found "
                f"another one ({fingerprint}); load the same model."
            )
        prompts = Prompts(tower, names, self.vectors.shape[-2])
        with torch().no_grad():
            features = prompts.encode(torch().tensor(self.vectors))
        classes = features.double().cpu().numpy()
        return PromptClassifier(directions(classes), tower.scale, self)


@dataclass(frozen=True)
class PromptClassifier:
    """Classifier of images one at a time: softmax(scale cos(image, learned prompt))."""

    classes: Float[np.ndarray, "class feature"]
    scale: float
    context: LearnedContext

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of image embeddings, each by itself."""
        unit = directions(np.asarray(rows, dtype=float))
        return softmax(self.scale * (unit @ self.classes.T))


class Prompts:
    """Sentences "[context] name." of every class, ready to be encoded with any context."""

    def __init__(self, tower: TextTower, names: tuple[str, ...], n_tokens: int) -> None:
        self._tower, self._n_tokens = tower, n_tokens
        sentences = [f"{name.replace('_', ' ')}." for name in names]
        rows = []
        for name, tokens in zip(names, tower.tokenize(sentences), strict=True):
            # The positions of the context hold an ordinary word, so that no end mark is seen early.
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
        """Length of a word vector."""
        return int(self._words.shape[-1])

    def encode(self, context: "Tensor") -> "Tensor":
        """Text features (class, feature) for context vectors (token, width), or one set each."""
        context = context.to(self._words)
        if context.ndim == 2:
            context = context.expand(len(self._words), -1, -1)
        after = 1 + self._n_tokens
        vectors = torch().cat([self._words[:, :1], context, self._words[:, after:]], dim=1)
        return encode_vectors(self._tower, self._tokens, vectors)
