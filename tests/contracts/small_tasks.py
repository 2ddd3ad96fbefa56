"""How to build every method of the catalogue, ready to run on the small tasks of the contract."""

from functools import cache

from transduce import METHODS, Method
from transduce.methods.coop import CoOp
from transduce.testing import CLASSES, FEATURES


def build(name: str) -> Method:
    """A method with its default settings; CoOp with a tower, and too few epochs to matter."""
    if name != CoOp.name:
        return METHODS[name]()
    names = [f"class number {i}" for i in range(CLASSES)]
    return CoOp(tower=_random_tower(), class_names=names, epochs=3, context_length=4)


@cache
def _random_tower():
    import torch

    from transduce.encoders.torchvision_stand_in import import_torchvision

    import_torchvision()
    torch.set_num_threads(1)  # a tiny tower gains nothing from more
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    from transduce.encoders.prompt_tower import HuggingFaceTower

    def tokenizer(sentences):  # letters are its words: 1 starts, 63 ends a sentence
        return {"input_ids": [[1, *(2 + ord(c) % 61 for c in s), 63] for s in sentences]}

    torch.manual_seed(0)
    config = CLIPTextConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=32,
        projection_dim=FEATURES,
        bos_token_id=1,
        eos_token_id=63,
        pad_token_id=63,
    )
    return HuggingFaceTower(CLIPTextModelWithProjection(config), tokenizer, scale=20.0)
