import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transduce.encoders.encoder import Identity
from transduce.errors import EncoderMismatch, InvalidStore, UnknownName
from transduce.features.importers import Features, pick, read_features, write_store
from transduce.features.merging import merge
from transduce.features.store import FeatureStore
from transduce.features.verification import verify

IDENTITY = Identity("tiny", "0123", "none", 6)


def unit(rows, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make(folder, rows=10, seed=0, names="a", identity=IDENTITY):
    keys = [f"{names}{number}.jpg" for number in range(rows)]
    return write_store(Features(keys, unit(rows, seed), identity), folder)


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
    del meta["identity"]
    path.write_text(json.dumps(meta))
    with pytest.raises(InvalidStore, match="found a fault at 'identity'"):
        FeatureStore.open(tmp_path / "a")


def test_verify_finds_every_kind_of_damage(tmp_path):
    make(tmp_path / "a")
    assert verify(tmp_path / "a").problems == ()
    embeddings = tmp_path / "a" / "img_emb" / "img_emb_0000.npy"
    data = bytearray(embeddings.read_bytes())
    data[-1] ^= 1
    embeddings.write_bytes(data)
    assert verify(tmp_path / "a").problems == (
        "img_emb/img_emb_0000.npy has changed since it was written (its hash differs)",
    )
    embeddings.unlink()
    assert verify(tmp_path / "a").problems == ("img_emb/img_emb_0000.npy is missing",)


def test_verify_looks_at_the_numbers(tmp_path):
    rows = unit(10)
    rows[3] = np.nan
    rows[5] *= 3
    write_store(Features([str(n) for n in range(10)], rows, IDENTITY), tmp_path / "a")
    assert verify(tmp_path / "a").problems == (
        "img_emb/img_emb_0000.npy has 1 rows with NaN or infinity",
        "img_emb/img_emb_0000.npy has 1 rows that are not unit vectors",
    )


def test_verify_counts(tmp_path):
    make(tmp_path / "a")
    path = tmp_path / "a" / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "rows": 11}))
    assert verify(tmp_path / "a").problems == ("meta.json counts 11 rows, its shards 10",)


def test_a_shard_of_another_shape_is_refused_on_reading(tmp_path):
    store = make(tmp_path / "a")
    np.save(tmp_path / "a" / "img_emb" / "img_emb_0000.npy", np.zeros((9, 6), np.float16))
    with pytest.raises(InvalidStore, match="Expected 10 rows of 6 numbers"):
        store.embeddings()


def test_merge_keeps_rows_and_names_together(tmp_path):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", 7, seed=1, names="b")
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert merged.keys() == one.keys() + two.keys()
    np.testing.assert_array_equal(
        merged.embeddings(), np.concatenate([one.embeddings(), two.embeddings()])
    )
    assert merged.identity == IDENTITY
    assert verify(tmp_path / "c").problems == ()


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


def write_clip_retrieval(folder, parts=3, rows=4):
    (folder / "img_emb").mkdir(parents=True)
    (folder / "metadata").mkdir()
    for part in range(parts):
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", unit(rows, part).astype(np.float16))
        table = pa.table({"image_path": [f"{part}/{row}.jpg" for row in range(rows)]})
        pq.write_table(table, folder / "metadata" / f"metadata_{part}.parquet")
    return folder


def test_clip_retrieval_folder(tmp_path):
    folder = write_clip_retrieval(tmp_path / "clip", parts=11)
    features = read_features(folder)
    assert features.keys[-1] == "10/3.jpg"  # by number, not by letter
    np.testing.assert_allclose(features.embeddings[-4:], unit(4, 10), atol=1e-3)
    assert features.identity.encoder == "unknown"
    assert features.identity.weights.startswith("imported:")


def test_clip_retrieval_with_rows_that_do_not_match(tmp_path):
    folder = write_clip_retrieval(tmp_path / "clip")
    np.save(folder / "img_emb" / "img_emb_1.npy", unit(5))
    with pytest.raises(InvalidStore, match="found 4 and 5; export again"):
        read_features(folder)
    (folder / "metadata" / "metadata_1.parquet").unlink()
    with pytest.raises(InvalidStore, match="Expected metadata for"):
        read_features(folder)


def test_our_store_reads_as_a_clip_retrieval_folder(tmp_path):
    store = make(tmp_path / "a")
    (tmp_path / "a" / "meta.json").unlink()
    features = read_features(tmp_path / "a")
    assert features.keys == store.keys()


def test_npz_npy_and_parquet(tmp_path):
    rows, keys = unit(5), [f"{n}.jpg" for n in range(5)]
    np.savez(tmp_path / "f.npz", embeddings=rows * 7, file_name=np.array(keys), labels=np.arange(5))
    np.save(tmp_path / "f.npy", rows)
    table = pa.table({"file_name": keys, "embedding": list(rows)})
    pq.write_table(table, tmp_path / "f.parquet")
    for name in ("f.npz", "f.parquet", "f.npy"):
        features = read_features(tmp_path / name, encoder="clip RN50")
        np.testing.assert_allclose(features.embeddings, rows, atol=1e-6)
        assert features.identity == Identity("clip RN50", "as declared", "as declared", 6)
        assert features.keys == (keys if name != "f.npy" else [f"f.npy#{n}" for n in range(5)])


def test_store_reads_as_features(tmp_path):
    store = make(tmp_path / "a")
    features = read_features(tmp_path / "a")
    assert (features.keys, features.identity) == (store.keys(), IDENTITY)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_rows_that_cannot_be_solved_with_are_named(tmp_path, bad):
    rows = unit(5)
    rows[3] = bad
    np.save(tmp_path / "f.npy", rows)
    with pytest.raises(InvalidStore, match="in row 3; remove them"):
        read_features(tmp_path / "f.npy")


def test_features_of_unknown_form(tmp_path):
    with pytest.raises(InvalidStore, match=r"f\.bin, which does not exist"):
        read_features(tmp_path / "f.bin")
    with pytest.raises(InvalidStore, match="found neither"):
        read_features(tmp_path)
    np.savez(tmp_path / "two.npz", left=unit(3), right=unit(3))
    with pytest.raises(InvalidStore, match="found left, right"):
        read_features(tmp_path / "two.npz")
    np.savez(tmp_path / "objects.npz", embeddings=np.array([{}, []], dtype=object))
    with pytest.raises(InvalidStore, match="Expected plain arrays"):
        read_features(tmp_path / "objects.npz")
    pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0]]}), tmp_path / "ragged.parquet")
    with pytest.raises(InvalidStore, match="vectors of one length"):
        read_features(tmp_path / "ragged.parquet")
    np.savez(tmp_path / "short.npz", embeddings=unit(3), file_name=np.array(["a"]))
    with pytest.raises(InvalidStore, match="a name for each of 3 rows"):
        read_features(tmp_path / "short.npz")


def test_two_imports_of_unknown_encoders_never_mix(tmp_path):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", embeddings=unit(4, ord(name)))
        write_store(read_features(tmp_path / f"{name}.npz"), tmp_path / name)
    with pytest.raises(EncoderMismatch, match="found weights imported:"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_picking_suggests_the_nearest_name(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'features'"):
        pick(tmp_path, ["features", "other"], "feature")
