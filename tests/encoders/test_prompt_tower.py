"""The text tower of a loaded encoder, as methods that learn prompts take it."""

import numpy as np
import pytest
import torch

from transduce.encoders import load_encoder
from transduce.encoders.prompt_tower import prompt_tower
from transduce.errors import InvalidEncoder
from transduce.methods.text_tower import TextTower, encode_vectors

SENTENCES = ["cat.", "a gray cat", "x"]


@pytest.fixture(params=["open_clip", "hf"])
def encoder(request):
    if request.param == "open_clip":
        return load_encoder(f"open_clip:local-dir:{request.getfixturevalue('vit_folder')}")
    return load_encoder(f"hf:{request.getfixturevalue('clip_folder')}")


def test_encodes_sentences_as_the_encoder_does(encoder):
    tower = prompt_tower(encoder)
    assert isinstance(tower, TextTower)
    tokens = tower.pad(tower.tokenize(SENTENCES))
    with torch.no_grad():
        features = torch.nn.functional.normalize(tower.encode(tokens), dim=1).numpy()
        swapped = encode_vectors(tower, tokens, tower.token_embedding(tokens).flip(0))
    np.testing.assert_allclose(features, encoder.embed_texts(SENTENCES), atol=1e-5)
    assert not torch.allclose(swapped, torch.from_numpy(features))


def test_tokens_end_with_the_end_mark(encoder):
    rows = prompt_tower(encoder).tokenize(SENTENCES)
    assert len({row[0] for row in rows}) == len({row[-1] for row in rows}) == 1
    assert all(max(row) == row[-1] and row.count(row[-1]) == 1 for row in rows)
    assert len({len(row) for row in rows}) > 1  # no padding


def test_encoders_without_torch_or_without_a_clip_are_refused(siglip_folder):
    with pytest.raises(InvalidEncoder, match=r"in torch .* found object; load one as open_"):
        prompt_tower(object())
    with pytest.raises(InvalidEncoder, match="Expected a CLIPModel"):
        prompt_tower(load_encoder(f"hf:{siglip_folder}"))
