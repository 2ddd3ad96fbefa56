"""What CoOp needs of a text tower, and the two families of models that have it.

Prompts are learnt as vectors in the place of word embeddings. Rather than re-implementing each
model's forward pass, `encode_vectors` lets the model run its own, and swaps the output of its
`token_embedding` layer on the way: positions, masks and pooling stay the model's business.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from transduce.errors import InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Embedding


def torch() -> Any:  # noqa: ANN401
    """The library, which is an extra and takes seconds to import."""
    try:
        import torch as library
    except ImportError:
        raise MissingExtra("CoOp", "torch") from None
    return library


class TextTower(Protocol):
    """A text encoder whose word embeddings can be replaced.

    `scale` multiplies cosines (CLIP's learnt logit scale); `longest` is how many tokens fit.
    `tokenise` gives each sentence with its start and end marks and without padding; `pad` brings
    such rows to the shape that `encode` takes; `encode` runs with gradients.
    """

    token_embedding: "Embedding"
    scale: float
    longest: int

    def tokenise(self, sentences: Sequence[str]) -> list[list[int]]: ...

    def pad(self, tokens: Sequence[Sequence[int]]) -> "Tensor": ...

    def encode(self, tokens: "Tensor") -> "Tensor": ...


class OpenClipTower:
    """The text tower of an open_clip model, with `open_clip.get_tokenizer(name)`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:  # noqa: ANN401
        text: Any = model if hasattr(model, "token_embedding") else getattr(model, "text", None)
        if not hasattr(text, "token_embedding") or not hasattr(model, "encode_text"):
            raise InvalidSetting(
                f"Expected an open_clip model with a token_embedding, found {type(model).__name__};"
                " towers of Hugging Face models go into HuggingFaceTower."
            )
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.token_embedding = text.token_embedding
        self.scale = float(model.logit_scale.detach().exp())
        self.longest = int(text.positional_embedding.shape[0])

    def tokenise(self, sentences: Sequence[str]) -> list[list[int]]:
        rows = self._tokenizer(list(sentences))
        # The end mark has the largest number of the vocabulary; after it there is padding.
        return [row[: int(row.argmax()) + 1].tolist() for row in rows]

    def pad(self, tokens: Sequence[Sequence[int]]) -> "Tensor":
        return _padded(tokens, self.longest, filling=[0] * len(tokens), like=self.token_embedding)

    def encode(self, tokens: "Tensor") -> "Tensor":
        features: Tensor = self._model.encode_text(tokens)
        return features


class HuggingFaceTower:
    """The text tower of a CLIPModel or CLIPTextModelWithProjection, with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, *, scale: float | None = None) -> None:  # noqa: ANN401
        if not hasattr(model, "text_model") or not hasattr(model, "text_projection"):
            raise InvalidSetting(
                "Expected a CLIPModel or CLIPTextModelWithProjection, found "
                f"{type(model).__name__}; the projection into the image space is needed."
            )
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.token_embedding = model.text_model.embeddings.token_embedding
        learnt = getattr(model, "logit_scale", None)
        self.scale = scale or (100.0 if learnt is None else float(learnt.detach().exp()))
        self.longest = int(model.text_model.embeddings.position_embedding.num_embeddings)

    def tokenise(self, sentences: Sequence[str]) -> list[list[int]]:
        return [list(row) for row in self._tokenizer(list(sentences))["input_ids"]]

    def pad(self, tokens: Sequence[Sequence[int]]) -> "Tensor":
        # Whatever follows the end mark is neither attended to nor pooled: repeat it.
        width = max(len(row) for row in tokens)
        return _padded(tokens, width, [row[-1] for row in tokens], self.token_embedding)

    def encode(self, tokens: "Tensor") -> "Tensor":
        pooled = self._model.text_model(input_ids=tokens).pooler_output
        features: Tensor = self._model.text_projection(pooled)
        return features


def encode_vectors(tower: TextTower, tokens: "Tensor", vectors: "Tensor") -> "Tensor":
    """Text features of sentences whose words are `vectors`; `tokens` only marks their ends."""
    with _replaced_output(tower.token_embedding, vectors):
        return tower.encode(tokens)


def fingerprint(tower: TextTower) -> str:
    """A short hash of the word embeddings: two towers that differ in it cannot share vectors."""
    words = tower.token_embedding.weight.detach().float().cpu().numpy()
    return hashlib.sha256(words.tobytes()).hexdigest()[:16]


@contextmanager
def _replaced_output(module: "Embedding", output: "Tensor") -> Iterator[None]:
    handle = module.register_forward_hook(lambda *_: output)
    try:
        yield
    finally:
        handle.remove()


def _padded(
    tokens: Sequence[Sequence[int]], width: int, filling: Sequence[int], like: "Embedding"
) -> "Tensor":
    rows = [[*row, *[fill] * (width - len(row))] for row, fill in zip(tokens, filling, strict=True)]
    tensor: Tensor = torch().tensor(rows, device=like.weight.device)
    return tensor
