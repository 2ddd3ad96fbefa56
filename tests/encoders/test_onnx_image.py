"""Encoders of images alone, from a folder and from a hub on this machine."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.encoders.hub_layout import DIMENSION, SIDE, SIZE, WEIGHTS, hub_of, write_image_tower
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
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingWeights, match="weights of tiny in the cache") as caught:
        fetch_hub_model(model(), offline=True)
    assert str(caught.value).endswith(f"hf download tiny/tower --revision {REVISION}")
    in_cache(tmp_path / "cache", tower)
    data = (tower / "onnx" / "model.onnx").read_bytes()
    right = model(**{"onnx/model.onnx": hashlib.sha256(data).hexdigest()})
    assert fetch_hub_model(right, offline=True)["onnx/model.onnx"].read_bytes() == data
    with pytest.raises(InvalidEncoder, match="damaged or was changed: delete it"):
        fetch_hub_model(model(**{"onnx/model.onnx": "0" * 64}), offline=True)


def test_whether_a_model_is_there_is_known_without_loading_it(tower, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    assert not cached_hub_model(model())
    in_cache(tmp_path / "cache", tower)
    assert cached_hub_model(model())


def test_dinov2_is_downloaded_once_from_the_hub_that_hf_endpoint_names(tower, tmp_path):
    """In a process of its own: huggingface_hub reads its environment when it is imported."""
    code = (
        "import json, numpy as np\n"
        "from transduce.encoders import load_encoder\n"
        "for offline in (False, True):\n"
        "    encoder = load_encoder('dinov2', offline=offline)\n"
        "print(json.dumps([encoder.identity.encoder, encoder.identity.dimension]))"
    )
    hub = ENCODERS["dinov2"].hub
    with hub_of(tower, hub.repository, hub.revision) as (address, asked):
        environment = {
            **os.environ,
            "HF_ENDPOINT": address,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        environment.pop("HF_HUB_OFFLINE", None)
        finished = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == ["dinov2", DIMENSION]
    downloads = [path for command, path in asked if command == "GET" and "/resolve/" in path]
    assert len(downloads) == len(set(downloads)) == 2, asked
    assert all(hub.revision in path for path in downloads)
    assert Path(tmp_path / "home").is_dir()
