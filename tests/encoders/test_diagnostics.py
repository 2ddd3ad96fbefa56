"""A machine that cannot: each trouble is simulated where it strikes, and must name its fix."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from transduce.encoders import load_encoder
from transduce.encoders.diagnostics import out_of_memory_advice, torchvision_advice
from transduce.errors import EncoderUnavailable, MissingExtra, OutOfMemory

NO_NMS = "operator torchvision::nms does not exist"


def test_a_torchvision_of_another_torch_gets_the_pair_to_install(broken_import, monkeypatch):
    versions = {"torch": "2.13.0+cu126", "torchvision": "0.27.0"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    broken_import("open_clip", RuntimeError(NO_NMS))
    with pytest.raises(EncoderUnavailable) as caught:
        load_encoder("open_clip:ViT-B-32/openai")
    message = str(caught.value)
    assert NO_NMS in message
    assert (
        '\n  pip install --force-reinstall "torch==2.13.*" "torchvision==0.28.*" '
        "--index-url https://download.pytorch.org/whl/cu126\n"
    ) in message
    assert "found torchvision 0.27.0" in message


def test_the_same_deep_inside_transformers_is_found(clip_folder, monkeypatch):
    import transformers

    def lazily(name):
        try:
            raise RuntimeError(NO_NMS)
        except RuntimeError as error:
            raise ModuleNotFoundError(f"Could not import module {name!r}.") from error

    monkeypatch.delitem(transformers.__dict__, "CLIPModel", raising=False)
    monkeypatch.setattr(type(transformers), "__getattr__", lambda self, name: lazily(name))
    with pytest.raises(EncoderUnavailable, match="pip uninstall torchvision"):
        load_encoder(f"hf:{clip_folder}")


def test_other_errors_of_an_import_pass_unchanged():
    with pytest.raises(RuntimeError, match=r"^something else$"), torchvision_advice():
        raise RuntimeError("something else")


@pytest.mark.parametrize(
    ("identifier", "package", "extra"),
    [
        ("open_clip:ViT-B-32/openai", "open_clip", "open-clip"),
        ("hf:openai/clip-vit-base-patch32", "transformers", "hf"),
        ("hf:openai/clip-vit-base-patch32", "torch", "hf"),
    ],
)
def test_a_missing_library_names_its_extra(identifier, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf'pip install "transduce\[{extra}\]"'):
        load_encoder(identifier)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
    ],
)
def test_out_of_memory_suggests_half_the_batch(open_clip, vit_folder, pixels, error):
    encoder = load_encoder(f"local-dir:{vit_folder}", batch_size=4)

    def greedy(batch):
        raise error

    with pytest.raises(OutOfMemory, match=r"4 images at once on cpu.*--batch-size 2\."):
        replace(encoder, image_tower=greedy).embed_images(pixels(32))
    with pytest.raises(OutOfMemory, match=r"1 sentences at once on cpu.*use a smaller model"):
        replace(encoder, text_tower=greedy, batch_size=1).embed_texts(["a", "b"])


def test_a_model_that_does_not_fit_is_not_called_missing(open_clip, vit_folder, monkeypatch):
    def greedy(*arguments, **options):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 GB")

    monkeypatch.setattr(open_clip, "create_model", greedy)
    with pytest.raises(OutOfMemory, match=r"1 model at once on cpu.*use a smaller model"):
        load_encoder(f"local-dir:{vit_folder}")


def test_the_batch_it_suggests_is_one_it_keeps(open_clip, vit_folder, pixels):
    seen = []
    encoder = load_encoder(f"local-dir:{vit_folder}", batch_size=2)

    def watched(batch):
        seen.append(len(batch))
        return encoder.image_tower(batch)

    rows = replace(encoder, image_tower=watched).embed_images(pixels(32))
    assert seen == [2, 2, 1]
    whole = load_encoder(f"local-dir:{vit_folder}").embed_images(pixels(32))
    np.testing.assert_allclose(rows, whole, atol=1e-6)


def test_other_runtime_errors_pass_unchanged():
    with pytest.raises(RuntimeError, match=r"^shapes$"), out_of_memory_advice(1, "x", "cpu"):
        raise RuntimeError("shapes")


def test_a_device_that_is_not_there(open_clip, vit_folder):
    with pytest.raises(EncoderUnavailable, match=r"found 'tpu9'.*use --device cpu"):
        load_encoder(f"local-dir:{vit_folder}", device="tpu9")
