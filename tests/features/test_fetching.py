"""Feature stores behind a URL: fetched once, checked, and gone on with after a stop."""

import json
import sys
from contextlib import contextmanager

import fsspec
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.features.stores import contents
from tests.labeling.stores import write_simulated
from transduce import FeatureStore
from transduce.cli.main import app, run_command_line
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


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `transduce features`; returns (exit code, stdout, stderr)."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["transduce", "features", *words])
        with pytest.raises(SystemExit) as ended:
            run_command_line()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return command


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_info_and_verify_of_a_url(scheme, stored, opened, run):
    url = URL if scheme == "memory" else stored.as_uri()
    code, told, _ = run("info", url)
    assert (code, told.splitlines()[0]) == (0, f"{url}/  60 images x 24 numbers")
    assert set(opened) <= {"meta.json"}  # nothing else is read
    here, there = (json.loads(run("info", where, "--json")[1]) for where in (str(stored), url))
    assert here == there
    code, told, shown = run("verify", url)
    assert (code, told.splitlines()[1]) == (0, "Everything is in order.")
    assert f"Reading {url} (0.0 MB)" in shown
    assert not cached_store(url).exists()  # nothing of it is kept


def test_verify_reads_what_is_at_the_url_now(stored, run):
    FeatureStore.open(URL)  # fetched before
    system = fsspec.filesystem("memory")
    shard = "/bucket/store/img_emb/img_emb_0000.npy"
    system.pipe(shard, system.cat(shard)[:-1] + b"?")
    system.rm("/bucket/store/metadata/metadata_0000.parquet")
    code, told, _ = run("verify", URL)
    assert code == 1
    assert "img_emb_0000.npy has changed since it was written" in told
    assert "metadata_0000.parquet is missing" in told
    system.pipe("/bucket/store/meta.json", system.cat("/bucket/store/meta.json")[:-9] + b"}")
    for verb in ("info", "verify"):
        code, told, said = run(verb, URL)
        assert code == (2 if verb == "info" else 1)
        assert f"{URL}/meta.json" in told + said


def test_an_unfinished_store_at_a_url_is_said(stored, run):
    meta = json.loads((stored / "meta.json").read_text())
    meta = {name: value for name, value in meta.items() if name != "sha256"} | {"complete": False}
    fsspec.filesystem("memory").pipe("/bucket/store/meta.json", json.dumps(meta).encode())
    for verb in ("info", "verify"):
        code, told, _ = run(verb, URL)
        assert code == 1
        assert "unfinished" in told
        assert "where" in told


@pytest.mark.parametrize("verb", ["info", "verify"])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://bucket/other", "found no meta.json in memory://bucket/other"),
        ("s3://bucket/store", "transduce[s3]"),
        ("hf://datasets/me/store", "transduce[hf]"),
        ("gs://bucket/store", "gcsfs"),
        ("nothing://bucket/store", "Expected a URL that fsspec knows"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused(verb, url, said, run, monkeypatch):
    for package in ("s3fs", "gcsfs", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, package, None)
    code, told, shown = run(verb, url)
    assert (code, told) == (2, "")
    assert said in shown


def test_merge_takes_urls(stored, run, tmp_path):
    out = str(tmp_path / "both")
    code, told, shown = run("merge", str(stored), URL, "--out", out, "--prefix")
    assert (code, told) == (0, f"Wrote {out}/  120 images from 2 stores\n")
    assert f"Fetching {URL}" in shown


def test_import_of_a_url_is_refused(tmp_path, run):
    code, _, said = run("import", "s3://bucket/mine.npz", "--out", str(tmp_path / "store"))
    assert code == 2
    assert "found s3://bucket/mine.npz; copy it here first" in said


def test_the_bytes_of_a_store_are_shown_while_it_is_fetched(stored):
    shown = []

    @contextmanager
    def bar(title, total):
        done = []
        yield done.append
        shown.append((title, total, sum(done)))

    FeatureStore.open(URL, bar=bar)
    held = contents(stored)
    size = sum(len(held[name]) for name in held.keys() - {"meta.json", "texts.npz"})
    assert shown == [(f"Fetching {URL}", size, size)]
    FeatureStore.open(URL, bar=bar)
    assert len(shown) == 1  # nothing is fetched
