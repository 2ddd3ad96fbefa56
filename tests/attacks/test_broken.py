"""Broken input of every kind is taken or refused in words; the campaign tries thousands of each."""

import json
import os
import re
import tarfile
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.attacks.broken import KINDS, LAUGHS, ODD_CLASSES, VALUES, try_kind
from tests.attacks.outcomes import is_clear, refused
from tests.attacks.rows import ROWS
from tests.labeling.stores import NAMES
from transduce.benchmark.datasets import unpack as unpacking
from transduce.benchmark.datasets.unpack import unpack
from transduce.encoders.class_names import read_class_names
from transduce.errors import InvalidClasses, InvalidDataset, InvalidStore, UnreachableSource
from transduce.features.importing import open_features
from transduce.images.sources import find_images
from transduce.labeling.answers import answered_labels
from transduce.labeling.exports import EXPORTERS
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings, read_settings, to_toml

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("kind", KINDS)
def test_broken_input_is_refused_in_words(kind, tmp_path):
    taken, rejected, surprises = try_kind(kind, tmp_path / "x", 40, seed=7)
    assert surprises == []
    assert rejected > taken


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, k) for kind, texts in ODD_CLASSES.items() for k in range(len(texts))],
)
def test_deep_cyclic_and_exploding_classes(kind, number, tmp_path):
    path = tmp_path / f"classes{kind}"
    path.write_text(ODD_CLASSES[kind][number], encoding="utf-8")
    assert is_clear(refused(read_class_names, path))


def test_a_billion_laughs_and_devices_are_refused_at_once(tmp_path):
    (tmp_path / "laughs.yaml").write_text(LAUGHS)
    with pytest.raises(InvalidClasses, match="alias"):
        read_class_names(tmp_path / "laughs.yaml")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    for name in ("pipe.txt", "zero.txt"):
        with pytest.raises(InvalidClasses, match="which is none"):
            read_class_names(tmp_path / name)


def test_every_setting_is_typed_and_in_range(tmp_path):
    whole = to_toml(LabelSettings(source="x", classes=NAMES, prompts=NAMES))
    lines = whole.splitlines()
    for number, line in enumerate(lines):
        for value in VALUES:
            key = line.partition(" = ")[0]
            text = "\n".join([*lines[:number], f"{key} = {value}", *lines[number + 1 :]])
            (tmp_path / "run.toml").write_text(text)
            assert is_clear(refused(read_settings, tmp_path / "run.toml"))
    bad_lines = ["temperature = 1e300", "temperature = 0.0", "seed = -5", 'seed = "x"', "other = 1"]
    bad_lines += ['offline = "maybe"', "batch = true", 'batch = "many"', "source = 5"]
    for bad in bad_lines:
        key = bad.partition(" = ")[0]
        kept = [line for line in lines if not line.startswith(f"{key} = ")]
        (tmp_path / "run.toml").write_text("\n".join([*kept, bad]))
        assert refused(read_settings, tmp_path / "run.toml").startswith("Expected "), bad


def test_a_tensor_has_no_more_numbers_than_its_file(tmp_path):
    torch.save(torch.zeros(1, 4).expand(2_000_000_000, 4), tmp_path / "wide.pt")
    with pytest.raises(InvalidStore, match="Expected all numbers of 'embeddings' in the file"):
        open_features(tmp_path / "wide.pt")
    (tmp_path / "a.npy").write_bytes(b"")
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04")
    for name in ("a.npy", "b.npz"):
        with pytest.raises(InvalidStore):
            open_features(tmp_path / name)


def test_a_small_file_does_not_become_a_large_array(tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.features.arrays.LARGE", 1 << 20)
    np.savez_compressed(tmp_path / "bomb.npz", embeddings=np.zeros((1 << 19, 8), np.float32))
    with pytest.raises(InvalidStore, match="without compression"):
        open_features(tmp_path / "bomb.npz")


def test_odd_sources(tmp_path):
    (tmp_path / "magic.parquet").write_bytes(b"PAR1")
    (tmp_path / "nul.txt").write_text("a\0b.jpg\n")
    with pytest.raises(UnreachableSource):
        find_images("zip://*.png::/etc/passwd")
    assert refused(find_images, str(tmp_path / "magic.parquet")).startswith("Expected ")
    assert [e.problem for e in find_images(str(tmp_path / "nul.txt")).entries] == [
        "name is not a path"
    ]


def test_archives_are_unpacked_within_limits(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"photos/{number}.jpg", b"x" * 1000)
    monkeypatch.setattr(unpacking, "MOST_FILES", 10)
    with pytest.raises(InvalidDataset, match="Expected at most 10 files"):
        unpack(tmp_path / "many.zip", ("photos",), tmp_path / "out")
    monkeypatch.setattr(unpacking, "MOST_FILES", 100)
    monkeypatch.setattr(unpacking, "MOST_BYTES", 5000)
    with pytest.raises(InvalidDataset, match="5,000 bytes"):
        unpack(tmp_path / "many.zip", ("photos",), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with tarfile.open(tmp_path / "both.tar", "w") as tape:  # a file and a folder of one name
        for name in ("photos/a", "photos/a/b", "photos/" + "n" * 300):
            tape.addfile(tarfile.TarInfo(name))
    assert is_clear(refused(unpack, tmp_path / "both.tar", ("photos",), tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both.tar", "many.zip"]


def test_cards_name_secure_addresses():
    addresses = re.findall(r'url = "(.*)"', "".join(text_of_cards()))
    assert len(addresses) > 15
    assert [url for url in addresses if not url.startswith("https://")] == []


def text_of_cards():
    for card in (resources.files("transduce.benchmark.datasets") / "cards").iterdir():
        yield card.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "label-studio", "cleanlab"])
def test_exports_read_block_by_block(form, finished_run, tmp_path, monkeypatch):
    def whole(run):
        raise AssertionError("all probabilities at once")

    monkeypatch.setattr(RunDirectory, "probabilities", whole)
    labels = answered_labels(RunDirectory.load(finished_run))
    assert EXPORTERS[form](labels, tmp_path / "out")


def test_every_attack_names_the_tests_that_hold_it():
    assert sorted(ROWS) == list(range(1, 27))
    for row in ROWS.values():
        for name in row.tests:
            file, _, function = name.partition("::")
            assert f"\ndef {function}(" in (TESTS / file).read_text(encoding="utf-8"), name


def test_models_are_written_byte_for_byte_the_same(finished_run, tmp_path):
    model = RunDirectory.load(finished_run).model()
    written = []
    for number in range(4):
        model.write(tmp_path / f"{number}.safetensors")
        written.append((tmp_path / f"{number}.safetensors").read_bytes())
    assert set(written) == {(finished_run / "model.safetensors").read_bytes()}
    length = int.from_bytes(written[0][:8], "little")
    header = json.loads(written[0][8 : 8 + length])
    assert list(header) == sorted(header)
