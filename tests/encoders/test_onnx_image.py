"""Encoders of images alone, from a folder and from a hub on this machine."""

import hashlib

import numpy as np
import pytest
from PIL import Image

from benchmarks.small_hub import serve_hub
from tests.encoders.hub_layout import DIMENSION, SIDE, SIZE, WEIGHTS, write_image_tower
from transduce.encoders import ENCODERS, load_encoder
from transduce.encoders.hub import HubModel, cached_hub_model, fetch_hub_model
from transduce.errors import InvalidEncoder, MissingWeights
from transduce.features.embedding import Resources, embed

REPOSITORY, REVISION = "tiny/tower", "8b1f705a3a7f6f062f6bdd21986c1583d3ef105d"


@pytest.fixture
def tower(tmp_path):
    return write_image_tower(tmp_path / "tower")


def expected(pixels):
    rows = pixels.mean((2, 3)) @ WEIGHTS
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("name", ["onnx/model.onnx", "model.onnx"])
def test_the_first_token_or_the_pooled_output_is_the_image(tmp_path, pixels, tokens, name):
    folder = write_image_tower(tmp_path / "tower", name=name, tokens=tokens)
    encoder = load_encoder(f"onnx-image:{folder}")
    images = pixels(SIZE) + np.float32(1.0)
    np.testing.assert_allclose(encoder.embed_images(images), expected(images), atol=1e-6)
    assert encoder.embed_images(images[:0]).shape == (0, DIMENSION)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize_to) == (SIZE, SIDE)
    assert encoder.preprocessing.mean == (0.485, 0.456, 0.406)


def test_identity_follows_the_weights(tower, tmp_path):
    first = load_encoder(f"onnx-image:{tower}").identity
    assert (first.encoder, first.dimension) == (f"onnx-image:{tower}", DIMENSION)
    other = write_image_tower(tmp_path / "other", weights=2 * WEIGHTS + 1)
    assert load_encoder(f"onnx-image:{other}").identity.weights != first.weights


def test_images_are_embedded_and_words_are_refused_with_advice(tower, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for name, color in (("a.png", (200, 30, 10)), ("b.png", (10, 60, 220))):
        Image.new("RGB", (9, 7), color).save(images / name)
    encoder = load_encoder(f"onnx-image:{tower}")
    store = embed(images, encoder, resources=Resources(workers=1))
    pixels = np.stack(
        [encoder.preprocessing(Image.open(images / key)) for key in ("a.png", "b.png")]
    )
    np.testing.assert_allclose(store.embeddings(), encoder.embed_images(pixels), atol=1e-3)
    for ask in (encoder.embed_texts, encoder.embed_classes):
        with pytest.raises(InvalidEncoder, match=r"images only; .* --view onnx-image:"):
            ask(["cat", "dog"])


def test_folders_and_graphs_that_do_not_fit_are_refused(tower, pixels):
    with pytest.raises(InvalidEncoder, match="Expected an image tower in"):
        load_encoder("onnx-image:/no/such/folder")
    with pytest.raises(InvalidEncoder, match=rf"\(n, 3, {SIZE}, {SIZE}\)"):
        load_encoder(f"onnx-image:{tower}").embed_images(pixels(SIZE + 1))
    (tower / "onnx" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InvalidEncoder, match="onnxruntime can load"):
        load_encoder(f"onnx-image:{tower}").embed_images(pixels(SIZE))
    (tower / "preprocessor_config.json").write_text("{}")
    with pytest.raises(InvalidEncoder, match="Expected size, image_mean, image_std in"):
        load_encoder(f"onnx-image:{tower}")


def test_dinov2_is_pinned():
    for name in ("dinov2", "dinov2-q8"):
        hub = ENCODERS[name].hub
        assert (hub.name, hub.repository, len(hub.revision)) == (
            name,
            "onnx-community/dinov2-small",
            40,
        )
        assert "preprocessor_config.json" in hub.files
    assert len(ENCODERS["dinov2-q8"].hub.files["onnx/model_quantized.onnx"]) == 64


def model(**digests):
    files = {"onnx/model.onnx": "", "preprocessor_config.json": ""} | digests
    return HubModel("tiny", REPOSITORY, REVISION, files)


def in_cache(cache, tower):
    """A copy of the tower where huggingface_hub would keep it."""
    import shutil

    snapshot = cache / "models--tiny--tower" / "snapshots" / REVISION
    shutil.copytree(tower, snapshot)
    return snapshot


def test_files_in_the_cache_are_found_and_compared_with_their_checksum(
    tower, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingWeights, match="weights of tiny in the cache") as caught:
        fetch_hub_model(model(), offline=True)
    assert "(transduce download tiny)" in str(caught.value)
    in_cache(tmp_path / "cache", tower)
    data = (tower / "onnx" / "model.onnx").read_bytes()
    right = model(**{"onnx/model.onnx": hashlib.sha256(data).hexdigest()})
    assert fetch_hub_model(right, offline=True).paths["onnx/model.onnx"].read_bytes() == data
    with pytest.raises(InvalidEncoder, match="damaged or was changed: delete it"):
        fetch_hub_model(model(**{"onnx/model.onnx": "0" * 64}), offline=True)


def test_whether_a_model_is_there_is_known_without_loading_it(tower, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert not cached_hub_model(model())
    in_cache(tmp_path / "cache", tower)
    assert cached_hub_model(model())


def test_dinov2_is_downloaded_once_from_the_hub_that_hf_endpoint_names(
    tower, tmp_path, monkeypatch
):
    hub = ENCODERS["dinov2"].hub
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with serve_hub({hub.repository: (tower, hub.revision)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        for offline in (False, True):
            encoder = load_encoder("dinov2", offline=offline)
    assert (encoder.identity.encoder, encoder.identity.dimension) == ("dinov2", DIMENSION)
    assert encoder.identity.origin.startswith(f"{hub.repository}@{hub.revision}: ")
    files = [path for method, path, _ in served.asked if method == "HEAD"]
    assert len(files) == len(set(files)) == 2
    assert all(hub.revision in path for path in files)
