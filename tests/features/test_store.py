import json
from dataclasses import replace

import numpy as np
import pytest

from transduce.encoders.encoder import Identity
from transduce.errors import EncoderMismatch, InvalidStore
from transduce.features.importing import import_arrays
from transduce.features.layout import Meta, Settings
from transduce.features.merging import merge
from transduce.features.store import FeatureStore
from transduce.features.verification import verify_store
from transduce.features.writing import Row, finish, write_shard
from transduce.machine.atomic import sha256_of

IDENTITY = Identity("tiny", "0123", "none", 6)


def unit(rows, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make(folder, rows=10, seed=0, names="a", identity=IDENTITY):
    keys = [f"{names}{number}.jpg" for number in range(rows)]
    return import_arrays(unit(rows, seed), keys, folder, identity=identity)


def test_opening_what_is_no_store(tmp_path):
    with pytest.raises(InvalidStore, match=r"found no meta\.json in .*; make one with"):
        FeatureStore.open(tmp_path)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(InvalidStore, match="Expected JSON"):
        FeatureStore.open(tmp_path)
    (tmp_path / "meta.json").write_text('{"format": "other"}')
    with pytest.raises(InvalidStore, match="found something else"):
        FeatureStore.open(tmp_path)


def test_a_newer_version_and_a_missing_field_are_told(tmp_path):
    make(tmp_path / "a")
    path = tmp_path / "a" / "meta.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "version": 2}))
    with pytest.raises(InvalidStore, match="update transduce"):
        FeatureStore.open(tmp_path / "a")
    del meta["identity"], meta["sha256"]  # as of a version that wrote no hash
    path.write_text(json.dumps(meta))
    with pytest.raises(InvalidStore, match="missing required field `identity`"):
        FeatureStore.open(tmp_path / "a")


def test_verify_finds_every_kind_of_damage(tmp_path):
    make(tmp_path / "a")
    assert verify_store(tmp_path / "a").problems == ()
    embeddings = tmp_path / "a" / "img_emb" / "img_emb_0000.npy"
    data = bytearray(embeddings.read_bytes())
    data[-1] ^= 1
    embeddings.write_bytes(data)
    assert verify_store(tmp_path / "a").problems == (
        "img_emb/img_emb_0000.npy has changed since it was written (its hash differs)",
    )
    embeddings.unlink()
    assert verify_store(tmp_path / "a").problems == ("img_emb/img_emb_0000.npy is missing",)


def test_verify_looks_at_the_numbers(tmp_path):
    rows = unit(10)
    rows[3] = np.nan
    rows[5] *= 3
    names = [Row(str(number), "") for number in range(10)]
    shard = write_shard(tmp_path / "a", 0, rows.astype(np.float16), names)
    finish(tmp_path / "a", Meta(IDENTITY, Settings()), [shard], [])
    assert verify_store(tmp_path / "a").problems == (
        "img_emb/img_emb_0000.npy has 1 rows with NaN or infinity",
        "img_emb/img_emb_0000.npy has 1 rows that are not unit vectors",
    )


def test_verify_counts(tmp_path):
    make(tmp_path / "a")
    path = tmp_path / "a" / "meta.json"
    meta = {**json.loads(path.read_text()), "rows": 11}
    path.write_text(json.dumps(meta))
    assert "found other bytes (its hash differs)" in verify_store(tmp_path / "a").problems[0]
    del meta["sha256"]  # as of a version that wrote no hash
    path.write_text(json.dumps(meta))
    assert verify_store(tmp_path / "a").problems == ("meta.json counts 11 rows, its shards 10",)


def test_a_shard_of_another_shape_is_refused_on_reading(tmp_path):
    store = make(tmp_path / "a")
    path = tmp_path / "a" / "img_emb" / "img_emb_0000.npy"
    np.save(path, np.zeros((9, 6), np.float16))
    with pytest.raises(InvalidStore, match=r"img_emb_0000.npy as it was written, found other"):
        store.embeddings()
    shard = replace(store.meta.shards[0], embeddings_sha256=sha256_of(path))
    with pytest.raises(InvalidStore, match="Expected 10 rows of 6 numbers"):
        FeatureStore(store.folder, replace(store.meta, shards=(shard,))).embeddings()


def test_merge_keeps_rows_and_names_together(tmp_path):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", 7, seed=1, names="b")
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert merged.keys() == one.keys() + two.keys()
    np.testing.assert_array_equal(
        merged.embeddings(), np.concatenate([one.embeddings(), two.embeddings()])
    )
    assert merged.identity == IDENTITY
    assert verify_store(tmp_path / "c").problems == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("encoder", "other"), ("weights", "9999"), ("preprocessing", "squash")],
)
def test_merge_refuses_other_encoders_of_the_same_width(tmp_path, field, value):
    make(tmp_path / "a")
    make(tmp_path / "b", names="b", identity=replace(IDENTITY, **{field: value}))
    with pytest.raises(EncoderMismatch, match=f"Expected one encoder, found {field} .* {value} in"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_merge_refuses_equal_names_unless_prefixed(tmp_path):
    make(tmp_path / "a")
    make(tmp_path / "b", seed=1)
    with pytest.raises(InvalidStore, match=r"found a0\.jpg in .*a and in .*b; add --prefix"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c", prefix=True)
    assert merged.keys()[::10] == ["a/a0.jpg", "b/a0.jpg"]


def test_merge_needs_two_stores_and_an_empty_folder(tmp_path):
    make(tmp_path / "a")
    make(tmp_path / "b", names="b")
    with pytest.raises(InvalidStore, match="at least two"):
        merge([tmp_path / "a"], tmp_path / "c")
    with pytest.raises(InvalidStore, match="Expected a new folder"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "b")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.0])
def test_rows_without_a_direction_are_named(tmp_path, wrong):
    rows = np.ones((6, 4), np.float16)
    rows[4] = wrong
    shard = write_shard(tmp_path, 0, rows, [Row(f"{n}.jpg", "") for n in range(6)])
    finish(tmp_path, Meta(Identity("e", "w", "p", 4), Settings()), [shard], [])
    with pytest.raises(InvalidStore, match=r"row 4 \(4\.jpg\)"):
        list(FeatureStore.open(tmp_path).unit_blocks(np.arange(6)))


def test_rows_by_number_and_as_unit_vectors(tmp_path):
    first, second = make(tmp_path / "a"), make(tmp_path / "b", seed=1, names="b")
    store = merge([first.folder, second.folder], tmp_path / "both")
    whole = store.embeddings()
    assert whole.shape == (20, 6)
    chosen = np.array([13, 2, 2, 19])
    np.testing.assert_array_equal(store.take(chosen), whole[chosen])
    rows = np.array([0, 3, 9, 10, 18])
    parts = list(store.unit_blocks(rows, block_rows=2))
    assert [part for part, _ in parts] == [slice(0, 2), slice(2, 3), slice(3, 5)]
    for part, block in parts:
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(block, whole[rows[part]], atol=1e-3)  # float16 rounds the norm
    assert sum(len(block) for _, block in store.unit_blocks()) == len(store)
