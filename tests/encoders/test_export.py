import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.encoders.small_models import SENTENCES
from transduce.encoders import export, load_encoder
from transduce.encoders.export import export_onnx
from transduce.errors import InvalidEncoder, InvalidSetting, MissingExtra

# One export takes seconds: each model is exported once, and looked at from all sides.
MODELS = {
    "open_clip ViT": ("local-dir:", "vit_folder"),
    "open_clip ResNet": ("local-dir:", "resnet_folder"),
    "transformers CLIP": ("hf:", "clip_folder"),
    "transformers SigLIP": ("hf:", "siglip_folder"),
}


@pytest.mark.parametrize("model", MODELS)
def test_the_exported_folder_is_the_same_encoder(model, request, open_clip, tmp_path, monkeypatch):
    prefix, folder = MODELS[model]
    encoder = load_encoder(f"{prefix}{request.getfixturevalue(folder)}")
    beside = []
    if model == "transformers CLIP":  # as if its weights did not fit into one file
        monkeypatch.setattr(export, "ONE_FILE_BYTES", 0)
        beside = ["image.onnx.data", "text.onnx.data"]
    exported = export_onnx(encoder, tmp_path / "new" / "exported")
    files = ["config.json", "image.onnx", "text.onnx", "tokenizer.json", *beside]
    assert sorted(path.name for path in exported.folder.iterdir()) == sorted(files)
    assert [path.name for path in exported.folder.parent.iterdir()] == ["exported"]

    picture = Image.effect_noise((97, 61), 90).convert("RGB")
    turned = [encoder.preprocessing(picture.rotate(9 * turn)) for turn in range(4)]
    batches = [np.stack(turned[:count]) for count in (1, 4)]  # it was exported with 2
    images = [encoder.embed_images(batch) for batch in batches]
    texts = encoder.embed_texts(SENTENCES)
    identity = encoder.identity

    # From here on, without the libraries it came from.
    for library in ("open_clip", "transformers", "torch", "torchvision", "sentencepiece"):
        monkeypatch.setitem(sys.modules, library, None)
    again = load_encoder(f"onnx:{exported.folder}")
    for batch, expected in zip(batches, images, strict=True):
        assert np.abs(again.embed_images(batch) - expected).max() < 1e-5
    assert np.abs(again.embed_texts(SENTENCES) - texts).max() < 1e-5
    assert again.preprocessing == encoder.preprocessing
    assert again.identity.encoder == exported.identity == f"onnx:{encoder.name}"
    assert again.identity.dimension == identity.dimension
    assert max(exported.image_difference, exported.text_difference) < 1e-5


@pytest.fixture
def encoder(open_clip, vit_folder):
    return load_encoder(f"local-dir:{vit_folder}")


def test_an_existing_folder_is_kept(encoder, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match="use --replace"):
        export_onnx(encoder, tmp_path)
    with pytest.raises(InvalidSetting, match=r"found 'precious\.txt'; choose another folder"):
        export_onnx(encoder, tmp_path, replace=True)
    with pytest.raises(InvalidSetting, match=r"found 'precious\.txt'; choose another folder"):
        export_onnx(encoder, tmp_path / "precious.txt", replace=True)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_tokenizer_that_differs_stops_the_export(encoder, tmp_path):
    from tokenizers import normalizers

    portable = encoder.text_input.portable()
    portable.normalizer = normalizers.Sequence([])  # no lower case
    wrong = replace(encoder, text_input=replace(encoder.text_input, portable=lambda: portable))
    with pytest.raises(InvalidEncoder, match="found other ones for 'A Photo"):
        export_onnx(wrong, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


def test_a_tower_that_differs_is_not_kept(encoder, tmp_path, monkeypatch):
    def other_towers(encoder, folder):
        (folder / "config.json").write_text("{}")

    class Wrong:
        def __init__(self, folder):
            pass

        def embed_images(self, pixels):
            return encoder.embed_images(pixels) + 1e-3

        embed_texts = encoder.embed_texts

    monkeypatch.setattr(export, "_write", other_towers)
    monkeypatch.setattr(export, "OnnxEncoder", Wrong)
    with pytest.raises(InvalidEncoder, match=r"exported image tower .* difference of 0\.001"):
        export_onnx(encoder, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


def test_the_extra_is_named(encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[export\]"'):
        export_onnx(encoder, tmp_path / "exported")
