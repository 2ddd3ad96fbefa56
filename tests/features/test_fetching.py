"""Feature stores behind a URL: fetched once, checked, and gone on with after a stop."""

import json
import sys

import fsspec
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.features.stores import contents
from tests.labeling.stores import write_simulated
from transduce import FeatureStore
from transduce.cli.main import app
from transduce.errors import InvalidStore, MissingExtra, NetworkRefused, UnreachableSource
from transduce.features.fetching import cached_store
from transduce.labeling.run_directory import RunDirectory
from transduce.machine import network

URL = "memory://bucket/store"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A store in fsspec's memory, and the same on disk."""
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    write_simulated(tmp_path / "store", images=60)
    system = fsspec.filesystem("memory")
    for name, content in contents(tmp_path / "store").items():
        system.pipe(f"/bucket/store/{name}", content)
    yield tmp_path / "store"
    system.rm("/bucket", recursive=True)


@pytest.fixture
def opened(monkeypatch):
    """The files of the memory that were opened."""
    from fsspec.implementations.memory import MemoryFileSystem

    names, real = [], MemoryFileSystem.open

    def watched(self, path, *arguments, **options):
        names.append(str(path).removeprefix("/bucket/store/"))
        return real(self, path, *arguments, **options)

    monkeypatch.setattr(MemoryFileSystem, "open", watched)
    return names


def test_a_store_behind_a_url_is_the_store_and_is_fetched_once(stored, opened):
    there = FeatureStore.open(URL)
    assert there.folder == cached_store(URL)
    assert contents(there.folder) == contents(stored)
    np.testing.assert_array_equal(there.embeddings(), FeatureStore.open(stored).embeddings())
    opened.clear()
    FeatureStore.open(URL + "/")
    assert opened == ["meta.json", "texts.npz"]  # of the latter this store has no hash


def test_what_was_fetched_before_a_stop_is_not_fetched_again(stored, opened, monkeypatch):
    from fsspec.implementations.memory import MemoryFile

    real = MemoryFile.read

    def stopping(self, *size):
        if self.path.endswith("metadata_0000.parquet"):
            raise ConnectionResetError("gone")
        return real(self, *size)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFile, "read", stopping)
        with pytest.raises(UnreachableSource, match=r"metadata_0000\.parquet to be readable"):
            FeatureStore.open(URL)
    with pytest.raises(InvalidStore, match=r"found no meta\.json"):  # it is not whole
        FeatureStore.open(cached_store(URL))
    assert "img_emb/img_emb_0000.npy" in opened
    opened.clear()
    FeatureStore.open(URL)
    assert "img_emb/img_emb_0000.npy" not in opened
    assert "metadata/metadata_0000.parquet" in opened


def test_a_damaged_file_is_fetched_again_and_other_bytes_are_refused(stored):
    shard = FeatureStore.open(URL).folder / "img_emb" / "img_emb_0000.npy"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    FeatureStore.open(URL)
    assert shard.read_bytes() == whole
    fsspec.filesystem("memory").pipe("/bucket/store/img_emb/img_emb_0000.npy", whole[:-1] + b"?")
    shard.unlink()
    with pytest.raises(InvalidStore, match="as it was written, found other bytes"):
        FeatureStore.open(URL)
    assert not shard.exists()


def test_names_that_lead_out_of_the_store_are_refused(stored, tmp_path):
    from transduce.features.layout import _digest

    meta = json.loads((stored / "meta.json").read_text())
    meta["files"]["../../outside.txt"] = "0" * 64
    del meta["sha256"]
    meta["sha256"] = _digest(meta)
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/store/meta.json", json.dumps(meta).encode())
    with pytest.raises(InvalidStore, match="files inside the feature store"):
        FeatureStore.open(URL)
    assert not (tmp_path / "cache" / "outside.txt").exists()


def test_what_is_no_store_or_cannot_be_read_is_said(stored, monkeypatch):
    with pytest.raises(InvalidStore, match=r"found no meta\.json in memory://bucket/other"):
        FeatureStore.open("memory://bucket/other")
    with network.offline(), pytest.raises(NetworkRefused, match="s3://bucket/store"):
        FeatureStore.open("s3://bucket/store")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match=r"transduce\[s3\]"):
        FeatureStore.open("s3://bucket/store")


def test_label_reads_features_behind_a_url(stored, tmp_path):
    names = ",".join(np.load(stored / "texts.npz")["sentences"][:4].tolist())
    for number, features in enumerate((str(stored), URL)):
        done = CliRunner().invoke(
            app,
            [
                "label", "--features", features, "--classes", names, "--template", "{}",
                "--out", str(tmp_path / str(number)),
            ],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    local, remote = (RunDirectory.load(tmp_path / n / "transduce-001") for n in "01")
    np.testing.assert_array_equal(remote.labels.label, local.labels.label)
    assert remote.settings.features == URL
    assert not (remote.folder / "features").exists()
    assert remote.store().folder == cached_store(URL)
