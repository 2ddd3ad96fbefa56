import json
import shutil
import socket

import numpy as np
import pytest
from huggingface_hub import constants

from benchmarks.small_hub import serve_hub
from tests.encoders.small_models import SENTENCES, as_transformers_clip
from transduce.encoders import load_encoder
from transduce.errors import InvalidEncoder, MissingWeights


def test_clip_equals_the_librarys_own_forward_pass(clip_folder, pixels):
    import torch
    from transformers import CLIPModel, CLIPTokenizer

    encoder = load_encoder(f"hf:{clip_folder}", batch_size=2)
    model = CLIPModel.from_pretrained(clip_folder).eval()
    tokens = CLIPTokenizer.from_pretrained(clip_folder)(
        list(SENTENCES), padding=True, truncation=True, max_length=20, return_tensors="pt"
    )
    with torch.inference_mode():
        output = model(pixel_values=torch.from_numpy(pixels(32)), **tokens)  # with the mask
    np.testing.assert_allclose(encoder.embed_images(pixels(32)), output.image_embeds, atol=2e-6)
    np.testing.assert_allclose(encoder.embed_texts(SENTENCES), output.text_embeds, atol=2e-6)
    assert encoder.identity.encoder == f"hf:{clip_folder}"
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == (32, "shortest")


def test_siglip_pads_to_the_full_length_without_a_mask(siglip_folder, pixels):
    import torch
    from transformers import SiglipModel, SiglipTokenizer

    encoder = load_encoder(f"hf:{siglip_folder}", batch_size=2)
    model = SiglipModel.from_pretrained(siglip_folder).eval()
    tokens = SiglipTokenizer.from_pretrained(siglip_folder)(
        list(SENTENCES), padding="max_length", truncation=True, max_length=16, return_tensors="pt"
    ).input_ids
    with torch.inference_mode():
        output = model(pixel_values=torch.from_numpy(pixels(32)), input_ids=tokens)
    np.testing.assert_allclose(encoder.embed_images(pixels(32)), output.image_embeds, atol=2e-6)
    np.testing.assert_allclose(encoder.embed_texts(SENTENCES), output.text_embeds, atol=2e-6)
    used = encoder.preprocessing
    assert (used.resize, used.interpolation) == ("squash", "bilinear")


def test_one_model_in_both_libraries_gives_one_embedding(open_clip, vit_folder, tmp_path, pixels):
    """The same weights as open_clip's and as transformers' CLIP, tokenizers and all."""
    theirs = load_encoder(f"open_clip:local-dir:{vit_folder}")
    as_transformers_clip(theirs.model, open_clip.get_tokenizer("ViT-B-32"), tmp_path)
    ours = load_encoder(f"hf:{tmp_path}")
    np.testing.assert_allclose(
        ours.embed_images(pixels(32)), theirs.embed_images(pixels(32)), atol=2e-6
    )
    np.testing.assert_allclose(
        ours.embed_texts(SENTENCES), theirs.embed_texts(SENTENCES), atol=2e-6
    )


def test_identity_follows_weights_and_activation(clip_folder, tmp_path):
    first = load_encoder(f"hf:{clip_folder}").identity
    assert first == load_encoder(f"hf:{clip_folder}").identity
    assert first.dimension == 24
    changed = shutil.copytree(clip_folder, tmp_path / "changed")
    config = json.loads((changed / "config.json").read_text())
    config["vision_config"]["hidden_act"] = "gelu"
    (changed / "config.json").write_text(json.dumps(config))
    assert load_encoder(f"hf:{changed}").identity.weights != first.weights


def test_weights_in_half_precision_run_in_float32(clip_folder, tmp_path, pixels):
    import torch
    from transformers import CLIPModel

    half = shutil.copytree(clip_folder, tmp_path / "half")
    CLIPModel.from_pretrained(clip_folder).half().save_pretrained(half)
    encoder = load_encoder(f"hf:{half}")
    assert {tensor.dtype for tensor in encoder.model.parameters()} == {torch.float32}
    assert encoder.embed_images(pixels(32)).dtype == np.float32


def test_models_in_the_cache_load_offline_and_others_say_how_to_get_them(
    clip_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--tiny--clip"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("c0ffee")
    shutil.copytree(clip_folder, repository / "snapshots" / "c0ffee")
    cached = load_encoder("hf:tiny/clip", offline=True)
    assert cached.identity.weights == load_encoder(f"hf:{clip_folder}").identity.weights
    with pytest.raises(MissingWeights, match="hf download openai/clip-vit-base-patch32"):
        load_encoder("hf:openai/clip-vit-base-patch32", offline=True)
    (repository / "snapshots" / "c0ffee" / "model.safetensors").unlink()
    with pytest.raises(MissingWeights, match="hf download tiny/clip"):
        load_encoder("hf:tiny/clip", offline=True)


def test_names_and_networks_that_fail_are_explained(monkeypatch):
    with pytest.raises(InvalidEncoder, match="ORG/NAME as on the hub, found 'a/b/c/d'"):
        load_encoder("hf:a/b/c/d")

    def unreachable(*arguments, **options):
        try:
            raise ConnectionError("Name or service not known")
        except ConnectionError as error:
            raise OSError("a long story") from error

    with serve_hub({}) as hub, monkeypatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.address)
        patch.setattr("huggingface_hub.hf_hub_download", unreachable)
        with pytest.raises(MissingWeights) as caught:
            load_encoder("hf:some/model")
    message = str(caught.value)
    assert "on the hub, found: Name or service not known\n" in message
    assert "hf auth login" in message
    assert message.endswith("\n  hf download some/model")


@pytest.mark.parametrize("encoder", ["hf:some/model", "open_clip:ViT-B-32/laion2b_s34b_b79k"])
def test_a_network_that_is_not_there_is_found_out_at_once(encoder, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(
            MissingWeights, match=r"no network to 127.0.0.1 .*: hf download"
        ) as told:
            load_encoder(encoder)
    assert "\n" not in str(told.value)
    assert capfd.readouterr().err == ""  # no line for each try of a library


def test_broken_models_are_refused(clip_folder, tmp_path):
    from safetensors.torch import load_file, save_file

    def copy(name):
        return shutil.copytree(clip_folder, tmp_path / name)

    bert = copy("bert")
    (bert / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InvalidEncoder, match=r"type clip or siglip .* found 'bert'"):
        load_encoder(f"hf:{bert}")
    bare = copy("bare")
    (bare / "preprocessor_config.json").unlink()
    with pytest.raises(InvalidEncoder, match=r"found no processor_config\.json"):
        load_encoder(f"hf:{bare}")
    torn = copy("torn")
    (torn / "config.json").write_text("{")
    with pytest.raises(InvalidEncoder, match="Expected JSON"):
        load_encoder(f"hf:{torn}")
    partial = copy("partial")
    weights = load_file(partial / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidEncoder, match=r"1 missing .* visual_projection\.weight"):
        load_encoder(f"hf:{partial}")
    with pytest.raises(InvalidEncoder, match=r"found no config\.json"):
        load_encoder(f"hf:{tmp_path}")
