"""The road as a user walks it: the installed command, the encoder that comes with the library."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from transduce.benchmark.synthetic import LOOKS, TEXTURES, UNSEEN, Thing, draw
from transduce.encoders import load_encoder
from transduce.features.store import FeatureStore


def command(*words):
    transduce = Path(sys.executable).parent / "transduce"
    return subprocess.run([transduce, *words], capture_output=True, text=True, check=False)


def test_a_drawn_folder_with_the_encoder_that_comes_along(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    generator = np.random.default_rng(0)
    for number in range(40):
        color, shape = UNSEEN[number % len(UNSEEN)]
        thing = Thing(shape, color, TEXTURES[number % len(TEXTURES)])
        draw(thing, LOOKS["shifted"], generator).save(photos / f"{number:02d}.png")
    (photos / "40.png").write_bytes(b"")

    done = command("embed", str(photos), "--out", str(tmp_path / "feats"), "--json", "--offline",
                   "--encoder", "shapes")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reasons"] == {"empty": 1}
    store = FeatureStore.open(tmp_path / "feats")
    assert store.identity == load_encoder("shapes").identity
    assert len(store) == 40
    checked = command("features", "verify", str(tmp_path / "feats"))
    assert checked.returncode == 0, checked.stdout

    unknown = command("embed", str(photos), "--out", str(tmp_path / "other"), "--encoder", "shaps")
    assert unknown.returncode == 2
    assert "did you mean 'shapes'" in unknown.stderr
