"""Small tasks with clear classes, and every method of the catalogue ready to run on them."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from transduce import METHODS, Method, Task
from transduce.methods.coop import CoOp

CLASSES, FEATURES, SHOTS = 6, 12, 3
CASES = [(name, space) for name, method in METHODS.items() for space in method.spaces]


@dataclass(frozen=True)
class Arrays:
    """A task as from_embeddings takes it, so that it can be changed before it is built."""

    images: np.ndarray
    classes: np.ndarray
    support: np.ndarray | None
    support_labels: np.ndarray | None

    def task(self, space: str) -> Task:
        return Task.from_embeddings(
            self.images,
            self.classes,
            support=self.support,
            support_labels=self.support_labels,
            space=space,
        )


def arrays(*, queries: int = 24, support: bool = True, present: int = CLASSES) -> Arrays:
    """Images near their class embedding; only the first `present` classes among the queries."""
    generator = np.random.default_rng(3)
    classes = generator.normal(size=(CLASSES, FEATURES))
    labels = np.arange(queries) % present
    shot_labels = np.repeat(np.arange(CLASSES), SHOTS)

    def near(of: np.ndarray) -> np.ndarray:
        return classes[of] + 0.9 * generator.normal(size=(len(of), FEATURES))

    return Arrays(
        near(labels),
        classes,
        near(shot_labels) if support else None,
        shot_labels if support else None,
    )


def for_method(method: Method, *, queries: int = 24, present: int = CLASSES) -> Arrays:
    return arrays(queries=queries, present=present, support=method.support != "unused")


def build(name: str, class_order: np.ndarray | None = None) -> Method:
    """A method with its default settings; CoOp with a tower, and too few epochs to matter."""
    if name != CoOp.name:
        return METHODS[name]()
    names = np.array([f"class number {i}" for i in range(CLASSES)])
    ordered = names if class_order is None else names[class_order]
    return CoOp(tower=_random_tower(), class_names=ordered.tolist(), epochs=3, context_length=4)


@cache
def _random_tower():
    import torch
    from torchvision_on_cpu import let_torchvision_import

    let_torchvision_import()
    torch.set_num_threads(1)  # a tiny tower gains nothing from more
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    from transduce.encoders.prompt_tower import HuggingFaceTower

    def tokenizer(sentences):  # letters are its words: 1 starts, 63 ends a sentence
        return {"input_ids": [[1, *(2 + ord(c) % 61 for c in s), 63] for s in sentences]}

    torch.manual_seed(0)
    config = CLIPTextConfig(
        vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=32, projection_dim=FEATURES,
        bos_token_id=1, eos_token_id=63, pad_token_id=63,
    )  # fmt: skip
    return HuggingFaceTower(CLIPTextModelWithProjection(config), tokenizer, scale=20.0)
