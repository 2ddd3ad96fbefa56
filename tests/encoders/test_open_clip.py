import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from tests.encoders.small_models import OPEN_CLIP_MODELS, SENTENCES, save_open_clip
from transduce.encoders import load_encoder
from transduce.encoders.open_clip import choose
from transduce.errors import InvalidEncoder, MissingWeights, UnknownName


@pytest.mark.parametrize("kind", ["vit", "resnet"])
def test_equals_the_librarys_own_forward_pass(open_clip, tmp_path, pixels, kind):
    import torch

    model = save_open_clip(open_clip, tmp_path, kind)
    encoder = load_encoder(f"open_clip:local-dir:{tmp_path}", batch_size=2)
    batch = pixels(encoder.preprocessing.size)
    with torch.inference_mode():
        images = model.encode_image(torch.from_numpy(batch), normalize=True).numpy()
        tokens = open_clip.get_tokenizer("ViT-B-32")(list(SENTENCES))
        texts = model.encode_text(tokens, normalize=True).numpy()
    np.testing.assert_allclose(encoder.embed_images(batch), images, atol=2e-6)
    np.testing.assert_allclose(encoder.embed_texts(SENTENCES), texts, atol=2e-6)


def test_batch_norm_does_not_see_the_batch(resnet_folder, open_clip, pixels):
    encoder = load_encoder(f"local-dir:{resnet_folder}")
    batch = pixels(64)
    alone = np.concatenate([encoder.embed_images(batch[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(encoder.embed_images(batch), alone, atol=1e-6)


def test_embeddings_are_unit_float32_and_empty_batches_are_fine(vit_folder, open_clip, pixels):
    encoder = load_encoder(f"local-dir:{vit_folder}")
    for rows in (encoder.embed_images(pixels(32)), encoder.embed_texts(SENTENCES)):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert encoder.embed_images(pixels(32, 0)).shape == (0, 24)
    assert encoder.embed_texts([]).shape == (0, 24)
    with pytest.raises(InvalidEncoder, match=r"\(n, 3, 32, 32\).*found \(5, 3, 33, 33\)"):
        encoder.embed_images(pixels(33))


def test_preprocessing_comes_from_the_models_own_config(vit_folder, resnet_folder, open_clip):
    vit = load_encoder(f"local-dir:{vit_folder}").preprocessing
    assert (vit.size, vit.mean, vit.std) == (32, (0.5, 0.4, 0.3), (0.2, 0.3, 0.25))
    resnet = load_encoder(f"local-dir:{resnet_folder}").preprocessing
    assert (resnet.interpolation, resnet.resize, resnet.crop) == ("bilinear", "squash", "nearest")


def test_identity_follows_the_weights_and_the_activation(vit_folder, open_clip, tmp_path):
    first = load_encoder(f"local-dir:{vit_folder}").identity
    assert first == load_encoder(f"open_clip:local-dir:{vit_folder}").identity
    assert first.dimension == 24
    assert first.encoder == f"open_clip:local-dir:{vit_folder}"

    other = shutil.copytree(vit_folder, tmp_path / "other")
    weights = load_file(other / "open_clip_model.safetensors")
    weights["visual.conv1.weight"][0, 0, 0, 0] += 1e-3
    save_file(weights, other / "open_clip_model.safetensors")
    assert load_encoder(f"local-dir:{other}").identity.weights != first.weights

    gelu = shutil.copytree(vit_folder, tmp_path / "gelu")
    config = json.loads((gelu / "open_clip_config.json").read_text())
    config["model_cfg"]["quick_gelu"] = False
    (gelu / "open_clip_config.json").write_text(json.dumps(config))
    assert load_encoder(f"local-dir:{gelu}").identity.weights != first.weights


@pytest.fixture
def tagged(open_clip, tmp_path, monkeypatch):
    """A tag of open_clip whose weights lie in a hub cache, as downloading would leave them."""
    from huggingface_hub import constants
    from open_clip import factory, pretrained

    gelu = {key: value for key, value in OPEN_CLIP_MODELS["vit"].items() if key != "quick_gelu"}
    (tmp_path / "Tiny-B-8.json").write_text(json.dumps(gelu))
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", [*factory._MODEL_CONFIG_PATHS])
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    open_clip.add_model_config(tmp_path)
    tags = {
        "openai": pretrained._pcfg(hf_hub="tiny/openai/", quick_gelu=True),
        "laion_e1": pretrained._slpcfg(hf_hub="tiny/laion/"),
    }
    monkeypatch.setitem(pretrained._PRETRAINED, "Tiny-B-8", tags)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for tag in ("openai", "laion"):
        repository = tmp_path / "hub" / f"models--tiny--{tag}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("c0ffee")
        save_open_clip(open_clip, repository / "snapshots" / "c0ffee", "vit")
    return tmp_path / "hub"


@pytest.mark.parametrize(
    "spelling",
    ["Tiny-B-8/openai", "Tiny-B/8/openai", "Tiny-B-8,openai", "Tiny-B/8,openai", "Tiny-B/8",
     "Tiny-B-8", "Tiny-B-8/OpenAI"],
)  # fmt: skip
def test_every_spelling_is_one_encoder(tagged, open_clip, spelling):
    choice = choose(spelling, open_clip)
    assert choice.name == "open_clip:Tiny-B-8/openai"
    assert (choice.repository, choice.quick_gelu) == ("tiny/openai", True)


def test_spellings_of_real_models(open_clip):
    for spelling in ("ViT-B/32", "ViT-B-32,openai", "ViT-B-32/openai", "ViT-B/32/openai"):
        assert choose(spelling, open_clip).name == "open_clip:ViT-B-32/openai"
    assert choose("RN50", open_clip).name == "open_clip:RN50/openai"
    laion = choose("ViT-B-32/laion2b-s34b-b79k", open_clip)
    assert laion.name == "open_clip:ViT-B-32/laion2b_s34b_b79k"
    assert laion.repository == "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"


def test_openai_tag_brings_quick_gelu(tagged, open_clip, vit_folder, pixels):
    """The famous trap: the plain config says GELU, OpenAI's weights were trained with QuickGELU."""
    encoder = load_encoder("open_clip:Tiny-B-8/openai", offline=True)
    quick = load_encoder(f"local-dir:{vit_folder}")  # the same weights, quick_gelu in its config
    plain = load_encoder("open_clip:Tiny-B-8/laion_e1", offline=True)  # and with GELU
    batch = pixels(32)
    assert np.array_equal(encoder.embed_images(batch), quick.embed_images(batch))
    assert np.abs(plain.embed_images(batch) - quick.embed_images(batch)).max() > 1e-3
    assert encoder.identity.weights != plain.identity.weights
    assert (plain.preprocessing.resize, plain.preprocessing.mean) == ("squash", (0.5, 0.5, 0.5))


def test_openai_weights_with_gelu_are_warned_of(tagged, open_clip, tmp_path):
    weights = tagged / "models--tiny--openai" / "snapshots" / "c0ffee"
    file = tmp_path / "ViT-openai.safetensors"
    shutil.copy(weights / "open_clip_model.safetensors", file)
    with pytest.warns(UserWarning, match="use open_clip:Tiny-B-8-quickgelu,"):
        encoder = load_encoder(f"open_clip:Tiny-B-8,{file}")
    assert encoder.identity.encoder == f"open_clip:Tiny-B-8,{file}"


def test_a_file_that_happens_to_have_a_tags_name_is_not_taken(open_clip, tmp_path, monkeypatch):
    (tmp_path / "openai").write_text("not weights")
    monkeypatch.chdir(tmp_path)
    assert choose("ViT-B-32/openai", open_clip).name == "open_clip:ViT-B-32/openai"


def test_hub_repositories_are_read_from_the_cache(tagged, open_clip, pixels):
    encoder = load_encoder("hf-hub:tiny/laion", offline=True)
    assert encoder.identity.encoder == "open_clip:hf-hub:tiny/laion"
    assert encoder.embed_images(pixels(32)).shape == (5, 24)


@pytest.mark.parametrize("identifier", ["open_clip:Tiny-B-8/openai", "hf-hub:tiny/openai"])
def test_missing_weights_offline_say_what_to_do(tagged, open_clip, identifier):
    shutil.rmtree(tagged / "models--tiny--openai")
    with pytest.raises(MissingWeights) as caught:
        load_encoder(identifier, offline=True)
    message = str(caught.value)
    assert "leave --offline out" in message
    assert message.endswith("hf download tiny/openai")
    assert str(tagged) in message


def test_missing_weights_with_the_offline_variable(tagged, open_clip, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # what HF_HUB_OFFLINE=1 sets
    shutil.rmtree(tagged / "models--tiny--openai")
    with pytest.raises(MissingWeights, match="unset HF_HUB_OFFLINE"):
        load_encoder("open_clip:Tiny-B-8/openai")


def test_a_repository_without_weights_never_gives_random_ones(tagged, open_clip):
    (tagged / "models--tiny--openai/snapshots/c0ffee/open_clip_model.safetensors").unlink()
    with pytest.raises(MissingWeights, match="hf download tiny/openai"):
        load_encoder("hf-hub:tiny/openai", offline=True)


def test_unknown_models_and_tags_suggest_the_nearest(open_clip):
    with pytest.raises(UnknownName, match="did you mean 'ViT-B-32'"):
        load_encoder("open_clip:ViT-B-33/openai")
    with pytest.raises(UnknownName, match=r"and \d+ more\.$"):
        load_encoder("open_clip:ViT-B-33/openai")
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        load_encoder("open_clip:ViT-B-32/opnai")
    with pytest.raises(UnknownName, match=r"found 'openai'\. Known: laion400m_e31"):
        load_encoder("open_clip:ViT-B-16-plus-240/openai")


def test_broken_folders_are_refused(open_clip, vit_folder, tmp_path):
    with pytest.raises(InvalidEncoder, match=r"found no open_clip_config\.json"):
        load_encoder(f"local-dir:{tmp_path}")
    weightless = shutil.copytree(vit_folder, tmp_path / "weightless")
    (weightless / "open_clip_model.safetensors").unlink()
    with pytest.raises(InvalidEncoder, match="Expected the weights of an open_clip model"):
        load_encoder(f"local-dir:{weightless}")
    misfit = shutil.copytree(vit_folder, tmp_path / "misfit")
    config = json.loads((misfit / "open_clip_config.json").read_text())
    config["model_cfg"]["embed_dim"] = 25
    (misfit / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidEncoder, match="size mismatch"):
        load_encoder(f"local-dir:{misfit}")
