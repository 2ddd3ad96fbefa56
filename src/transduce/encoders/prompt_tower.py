"""Text towers whose word embeddings can be replaced, for methods that learn prompts (CoOp).

`prompt_tower(encoder)` gives the tower of a loaded encoder. Token ids, padding and context length
are each model's own; `transduce.methods.text_tower.TextTower` says what a method may ask.
"""

from collections.abc import Sequence

from transduce.encoders.encoder import Encoder
from transduce.encoders.torch_towers import Module, Tensor, TorchEncoder
from transduce.errors import InvalidEncoder


def prompt_tower(encoder: Encoder) -> "OpenClipTower | HuggingFaceTower":
    """Return the text tower of a loaded `open_clip:` or `hf:` encoder.

    Parameters
    ----------
    encoder : Encoder
        What `load_encoder` returned for a CLIP in torch.

    Returns
    -------
    OpenClipTower or HuggingFaceTower
        The tower, for `CoOp(tower=...)`; it shares the encoder's weights.

    Raises
    ------
    InvalidEncoder
        If the encoder is not in torch (ONNX, precomputed), or its text model is no CLIP's.
    """
    if not isinstance(encoder, TorchEncoder):
        raise InvalidEncoder(
            f"Expected an encoder in torch to learn prompts with, found {type(encoder).__name__}; "
            "load one as open_clip:NAME or hf:NAME."
        )
    tokenize = encoder.text_input.tokenize
    if hasattr(encoder.model, "encode_text"):
        return OpenClipTower(encoder.model, tokenize)
    return HuggingFaceTower(
        encoder.model, lambda sentences: {"input_ids": _to_end_mark(tokenize(sentences))}
    )


class OpenClipTower:
    """The text tower of an open_clip model, with `open_clip.get_tokenizer(name)`."""

    def __init__(self, model: Module, tokenizer: Module) -> None:
        text: Module = model if hasattr(model, "token_embedding") else getattr(model, "text", None)
        if not hasattr(text, "token_embedding") or not hasattr(model, "encode_text"):
            raise InvalidEncoder(
                f"Expected an open_clip model with a token_embedding, found {type(model).__name__};"
                " towers of Hugging Face models go into HuggingFaceTower."
            )
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.token_embedding = text.token_embedding
        self.scale = float(model.logit_scale.detach().exp())
        self.longest = int(text.positional_embedding.shape[0])

    def tokenize(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each sentence, from start to end mark."""
        return _to_end_mark(self._tokenizer(list(sentences)))

    def pad(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Return the ids as a tensor of the full context length, filled with zeros."""
        return _padded(tokens, self.longest, [0] * len(tokens), self.token_embedding)

    def encode(self, tokens: Tensor) -> Tensor:
        """Return text features (sentence, feature), with gradients."""
        return self._model.encode_text(tokens)


class HuggingFaceTower:
    """The text tower of a CLIPModel or CLIPTextModelWithProjection, with its tokenizer."""

    def __init__(self, model: Module, tokenizer: Module, *, scale: float | None = None) -> None:
        if not hasattr(model, "text_model") or not hasattr(model, "text_projection"):
            raise InvalidEncoder(
                "Expected a CLIPModel or CLIPTextModelWithProjection, found "
                f"{type(model).__name__}; the projection into the image space is needed."
            )
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.token_embedding = model.text_model.embeddings.token_embedding
        learned = getattr(model, "logit_scale", None)
        self.scale = scale or (100.0 if learned is None else float(learned.detach().exp()))
        self.longest = int(model.text_model.embeddings.position_embedding.num_embeddings)

    def tokenize(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each sentence, from start to end mark."""
        return [list(row) for row in self._tokenizer(list(sentences))["input_ids"]]

    def pad(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Return the ids as a tensor as wide as the longest sentence."""
        # Whatever follows the end mark is neither attended to nor pooled: repeat it.
        width = max(len(row) for row in tokens)
        return _padded(tokens, width, [row[-1] for row in tokens], self.token_embedding)

    def encode(self, tokens: Tensor) -> Tensor:
        """Return text features (sentence, feature), with gradients."""
        pooled = self._model.text_model(input_ids=tokens).pooler_output
        return self._model.text_projection(pooled)


def _to_end_mark(rows: Tensor) -> list[list[int]]:
    """Cut padding: CLIP's end mark has the largest id of the vocabulary, its first one counts."""
    return [row[: int(row.argmax()) + 1].tolist() for row in rows]


def _padded(
    tokens: Sequence[Sequence[int]], width: int, filling: Sequence[int], embedding: Module
) -> Tensor:
    import torch

    rows = [[*row, *[fill] * (width - len(row))] for row, fill in zip(tokens, filling, strict=True)]
    return torch.tensor(rows, device=embedding.weight.device)
