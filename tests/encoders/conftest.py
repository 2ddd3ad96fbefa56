"""Small models with random weights, saved to disk as their libraries save them."""

import json

import numpy as np
import pytest

from tests.encoders.small_models import save_open_clip
from transduce.encoders.open_clip import import_open_clip
from transduce.encoders.torchvision_stand_in import import_torchvision


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Models this small lose more to waking a second thread than it gives them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def torchvision_imports():
    """The models that the tests make come from transformers itself, which imports torchvision."""
    import_torchvision()


@pytest.fixture(scope="session")
def open_clip():
    return import_open_clip()


@pytest.fixture(scope="session")
def vit_folder(open_clip, tmp_path_factory):
    folder = tmp_path_factory.mktemp("open-clip-vit")
    save_open_clip(open_clip, folder, "vit", mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.25])
    return folder


@pytest.fixture(scope="session")
def resnet_folder(open_clip, tmp_path_factory):
    folder = tmp_path_factory.mktemp("open-clip-resnet")
    save_open_clip(open_clip, folder, "resnet", interpolation="bilinear", resize_mode="squash")
    return folder


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory):
    """transformers' CLIP with a byte tokenizer of 514 tokens."""
    import torch
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("hf-clip")
    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "ca", "cat</w>"]
    vocabulary = {word: place for place, word in enumerate(words)}
    start, end = len(vocabulary), len(vocabulary) + 1
    vocabulary |= {"<|startoftext|>": start, "<|endoftext|>": end}
    tokenizer = CLIPTokenizer(vocabulary, [("c", "a"), ("ca", "t</w>")])
    tokenizer.save_pretrained(folder)
    tower = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    torch.manual_seed(1)
    text = tower | {
        "vocab_size": len(vocabulary),
        "max_position_embeddings": 20,
        "bos_token_id": start,
        "eos_token_id": end,
        "pad_token_id": end,
    }
    vision = tower | {"image_size": 32, "patch_size": 8}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    CLIPModel(config).save_pretrained(folder)
    pictures = {
        "size": {"shortest_edge": 32},
        "crop_size": {"height": 32, "width": 32},
        "do_center_crop": True,
        "resample": 3,
        "image_mean": [0.48, 0.46, 0.41],
        "image_std": [0.27, 0.26, 0.28],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    return folder


@pytest.fixture(scope="session")
def siglip_folder(tmp_path_factory):
    """transformers' SigLIP with a sentencepiece tokenizer trained on a few words."""
    import sentencepiece
    import torch
    from transformers import SiglipConfig, SiglipModel, SiglipTokenizer

    folder = tmp_path_factory.mktemp("hf-siglip")
    corpus = [
        "a photo of a cat",
        "the quick brown fox jumps over the lazy dog",
        "long words 0123456789",
        "café naïve",
    ] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus),
        model_prefix=str(folder / "spiece"),
        vocab_size=70,
        hard_vocab_limit=False,
        bos_id=-1,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        minloglevel=2,
    )
    tokenizer = SiglipTokenizer(str(folder / "spiece.model"), model_max_length=16)
    tokenizer.save_pretrained(folder)
    tower = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    torch.manual_seed(2)
    text = tower | {"vocab_size": tokenizer.vocab_size, "max_position_embeddings": 16}
    vision = tower | {"image_size": 32, "patch_size": 8}
    SiglipModel(SiglipConfig(text_config=text, vision_config=vision)).save_pretrained(folder)
    pictures = {
        "size": {"height": 32, "width": 32},
        "resample": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    return folder


@pytest.fixture
def pixels():
    def draw(size, count=5):
        random = np.random.default_rng(3)
        return random.standard_normal((count, 3, size, size), dtype=np.float32)

    return draw
