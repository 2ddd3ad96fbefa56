"""What CoOp asks of a text tower (`TextTower`), and features of vectors instead of words.

Prompts are learned as vectors instead of word embeddings. Rather than re-implementing each
model's forward pass, `encode_vectors` lets the model run its own, and swaps the output of its
`token_embedding` layer on the way: positions, masks and pooling stay the model's own.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from transduce.errors import MissingExtra

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Embedding


def torch() -> Any:  # noqa: ANN401
    """Import torch, which is an extra and takes seconds to load."""
    try:
        import torch as library
    except ImportError:
        raise MissingExtra("CoOp", "torch") from None
    return library


@runtime_checkable
class TextTower(Protocol):
    """A text encoder whose word embeddings can be replaced.

    `transduce.encoders.prompt_tower.prompt_tower` gives the one of a loaded encoder.

    Attributes
    ----------
    token_embedding : torch.nn.Embedding
        The layer whose output is replaced.
    scale : float
        What multiplies cosines: CLIP's learned logit scale.
    longest : int
        Tokens that fit into a sentence, marks included.
    """

    token_embedding: "Embedding"
    scale: float
    longest: int

    def tokenize(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each sentence, with start and end mark, without padding."""
        ...

    def pad(self, tokens: Sequence[Sequence[int]]) -> "Tensor":
        """Return such ids as one tensor (sentence, token) that `encode` takes."""
        ...

    def encode(self, tokens: "Tensor") -> "Tensor":
        """Return text features (sentence, feature), with gradients."""
        ...


def encode_vectors(tower: TextTower, tokens: "Tensor", vectors: "Tensor") -> "Tensor":
    """Text features of sentences whose words are `vectors`; `tokens` only marks their ends."""
    with _replaced_output(tower.token_embedding, vectors):
        return tower.encode(tokens)


def tower_fingerprint(tower: TextTower) -> str:
    """Short hash of the word embeddings: towers that differ in it cannot share vectors."""
    words = tower.token_embedding.weight.detach().float().cpu().numpy()
    return hashlib.sha256(words.tobytes()).hexdigest()[:16]


@contextmanager
def _replaced_output(module: "Embedding", output: "Tensor") -> Iterator[None]:
    handle = module.register_forward_hook(lambda *_: output)
    try:
        yield
    finally:
        handle.remove()
