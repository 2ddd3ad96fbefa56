"""Files of learned prompts: the context vectors of CoOp in safetensors."""

import json
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float32

from transduce.errors import InvalidFile

FORMAT = "transduce.coop-context.1"


class Context(Protocol):
    """What `write_context` needs; `transduce.methods.learned_context.LearnedContext` has it."""

    @property
    def vectors(self) -> Float32[np.ndarray, "*class token width"]:
        """Vectors before the class name, common to all classes or one set for each."""
        ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes the vectors were learned for."""
        ...

    @property
    def tower(self) -> str:
        """Fingerprint of the text tower that the vectors were learned through."""
        ...


class StoredContext(NamedTuple):
    """The contents of a context file; `LearnedContext(*stored)` applies them."""

    vectors: Float32[np.ndarray, "*class token width"]
    class_names: tuple[str, ...]
    tower: str


def write_context(path: str | Path, context: Context) -> None:
    """Write a context as a safetensors file; its class names and tower are in the metadata."""
    from safetensors.numpy import save_file

    metadata = {
        "format": FORMAT,
        "class_names": json.dumps(context.class_names),
        "tower": context.tower,
    }
    save_file({"context": np.ascontiguousarray(context.vectors)}, path, metadata)


def read_context(path: str | Path) -> StoredContext:
    """Read what `write_context` wrote; raise `InvalidFile` for anything else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            kind = metadata.get("format", "no format in its metadata")
            if kind != FORMAT or list(file.keys()) != ["context"]:
                raise InvalidFile(f"Expected a CoOp context ({FORMAT}) in {path}, found {kind}.")
            vectors = file.get_tensor("context")
    except SafetensorError as error:
        raise InvalidFile(
            f"Expected a safetensors file in {path}, found {error}; give what write_context wrote."
        ) from None
    names = tuple(json.loads(metadata["class_names"]))
    return StoredContext(vectors.astype(np.float32, copy=False), names, metadata["tower"])
