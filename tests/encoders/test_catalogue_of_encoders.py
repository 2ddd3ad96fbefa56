import subprocess
import sys

import pytest

from transduce.encoders import ENCODERS, load_encoder
from transduce.errors import InvalidEncoder, UnknownName


@pytest.mark.parametrize(
    ("typed", "meant"), [("onx:here", "onnx"), ("openclip:ViT-B-32", "open_clip"),
                         ("shaeps", "shapes"), ("precomputd:x", "precomputed")],
)  # fmt: skip
def test_an_unknown_prefix_suggests_the_nearest(typed, meant):
    with pytest.raises(UnknownName, match=f"Expected an encoder .* did you mean '{meant}'"):
        load_encoder(typed)


@pytest.mark.parametrize("prefix", [name for name in ENCODERS if ":" in ENCODERS[name].example])
def test_a_prefix_alone_shows_how_to_go_on(prefix):
    for typed in (prefix, f"{prefix}:"):
        with pytest.raises(InvalidEncoder, match=f"write it as in {prefix}:"):
            load_encoder(typed)


def test_every_entry_says_how_it_is_written():
    for name, entry in ENCODERS.items():
        assert entry.example.partition(":")[0] == name
        assert entry.about


@pytest.mark.parametrize(
    "identifier", ["ViT-B/32", "ViT-B-32,openai", "RN50", "open-clip:RN50", "hf-hub:a/b"]
)
def test_spellings_that_mean_open_clip(identifier, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "transduce.encoders.open_clip.load_open_clip",
        lambda name, settings: asked.append(name),
    )
    load_encoder(identifier)
    assert asked == [identifier.removeprefix("open-clip:")]


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(InvalidEncoder, match="at least 1, found 0"):
        load_encoder("shapes", batch_size=0)


def test_importing_the_catalogue_imports_no_heavy_library():
    code = (
        "import sys, transduce.encoders\n"
        "heavy = {'torch', 'transformers', 'open_clip', 'onnxruntime', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
