import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.features.test_store import IDENTITY, make, unit
from transduce import Task
from transduce.encoders import load_encoder
from transduce.encoders.encoder import Identity
from transduce.errors import EncoderMismatch, InvalidStore, MissingExtra, UnknownName
from transduce.features.importing import import_features, open_features, pick
from transduce.features.merging import merge
from transduce.features.store import FeatureStore

ROWS = unit(5)
KEYS = [f"{n}.jpg" for n in range(5)]


def write_clip_retrieval(folder, parts=2, rows=4):
    (folder / "img_emb").mkdir(parents=True)
    (folder / "metadata").mkdir()
    for part in range(parts):
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", unit(rows, part).astype(np.float16))
        table = pa.table({"image_path": [f"{part}/{row}.jpg" for row in range(rows)]})
        pq.write_table(table, folder / "metadata" / f"metadata_{part}.parquet")
    return folder


def test_clip_retrieval_folder(tmp_path):
    store = open_features(write_clip_retrieval(tmp_path / "clip", parts=11))
    assert store.keys()[-1] == "10/3.jpg"  # by number, not by letter
    np.testing.assert_allclose(store.embeddings()[-4:], unit(4, 10), atol=1e-3)
    assert store.identity.encoder == "unknown"
    assert store.identity.weights.startswith("imported:")


def test_clip_retrieval_with_rows_that_do_not_match(tmp_path):
    folder = write_clip_retrieval(tmp_path / "clip")
    np.save(folder / "img_emb" / "img_emb_1.npy", unit(5))
    with pytest.raises(InvalidStore, match="found 4 and 5; export again"):
        open_features(folder)
    (folder / "metadata" / "metadata_1.parquet").unlink()
    with pytest.raises(InvalidStore, match="Expected metadata for"):
        open_features(folder)


def test_our_store_reads_as_a_clip_retrieval_folder(tmp_path):
    store = make(tmp_path / "a")
    (tmp_path / "a" / "meta.json").unlink()
    assert open_features(tmp_path / "a").keys() == store.keys()


def write_npz(path, **more):
    np.savez(path, embeddings=ROWS * 7, file_name=np.array(KEYS), **more)
    return path


def write_npy(path):
    np.save(path, ROWS)
    return path


def write_parquet(path):
    pq.write_table(pa.table({"file_name": KEYS, "embedding": list(ROWS)}), path)
    return path


def write_pt(path):
    import torch

    torch.save({"features": torch.tensor(ROWS).half(), "path": KEYS, "model": {"scale": 7}}, path)
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "parquet", "pt", "pkl"])
def test_every_kind_of_file(tmp_path, kind):
    write = {"npz": write_npz, "npy": write_npy, "parquet": write_parquet}.get(kind, write_pt)
    store = open_features(write(tmp_path / f"f.{kind}"), encoder="clip RN50")
    np.testing.assert_allclose(store.embeddings(), ROWS, atol=1e-3)  # stored in float16
    assert store.identity == Identity("clip RN50", "as declared", "as declared", 6)
    assert store.keys() == (KEYS if kind != "npy" else [f"f.npy#{n}" for n in range(5)])


def test_a_store_is_opened_as_it_is(tmp_path):
    store = make(tmp_path / "a")
    assert open_features(tmp_path / "a", encoder="other", out=tmp_path / "b") == store
    assert store.identity == IDENTITY
    assert not (tmp_path / "b").exists()


def test_a_temporary_import_lives_as_long_as_its_store(tmp_path):
    store = open_features(write_npy(tmp_path / "f.npy"))
    folder = store.folder
    assert folder.is_dir()
    del store
    assert not folder.exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_rows_that_cannot_be_solved_with_are_named(tmp_path, bad):
    rows = unit(5)
    rows[3] = bad
    np.save(tmp_path / "f.npy", rows)
    with pytest.raises(InvalidStore, match="in row 3; remove them"):
        import_features(tmp_path / "f.npy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_features_of_unknown_form(tmp_path):
    with pytest.raises(InvalidStore, match=r"f\.bin, which does not exist"):
        open_features(tmp_path / "f.bin")
    with pytest.raises(InvalidStore, match="found neither"):
        open_features(tmp_path)
    np.savez(tmp_path / "two.npz", left=unit(3), right=unit(3))
    with pytest.raises(InvalidStore, match="found left, right"):
        open_features(tmp_path / "two.npz")
    np.savez(tmp_path / "objects.npz", embeddings=np.array([{}, []], dtype=object))
    with pytest.raises(InvalidStore, match="Expected plain arrays"):
        open_features(tmp_path / "objects.npz")
    pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0]]}), tmp_path / "ragged.parquet")
    with pytest.raises(InvalidStore, match="vectors of one length"):
        open_features(tmp_path / "ragged.parquet")
    np.savez(tmp_path / "short.npz", embeddings=unit(3), file_name=np.array(["a"]))
    with pytest.raises(InvalidStore, match="a name for each of 3 rows"):
        open_features(tmp_path / "short.npz")


def test_two_imports_of_unknown_encoders_never_mix(tmp_path):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", embeddings=unit(4, ord(name)))
        import_features(tmp_path / f"{name}.npz", tmp_path / name)
    with pytest.raises(EncoderMismatch, match="found weights imported:"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_picking_suggests_the_nearest_name(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'features'"):
        pick(tmp_path, ["features", "labels"], "feature")
    assert pick(tmp_path, ["features", "labels"], "labels") == "labels"


class Runs:
    """Runs a command when it is unpickled, as an attack does."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path, by_torch):
    import torch

    mark, path = tmp_path / "was-run", tmp_path / "features.plk"
    if by_torch:
        torch.save({"features": Runs(mark)}, path)
    else:
        path.write_bytes(pickle.dumps({"features": Runs(mark)}))
    with pytest.raises(InvalidStore, match="A pickle is a program"):
        open_features(path)
    assert not mark.exists()


def test_a_pickle_of_numpy_arrays_is_converted_with_the_lines_of_its_refusal(tmp_path):
    path = tmp_path / "published.plk"
    path.write_bytes(pickle.dumps({"features": ROWS, "labels": [0, 1, 0, 1, 0]}))
    with pytest.raises(InvalidStore) as caught:
        open_features(path)
    lines = [line.strip() for line in str(caught.value).splitlines() if line.startswith("  ")]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, check=True)
    np.testing.assert_allclose(
        open_features(tmp_path / "published.npz").embeddings(), ROWS, atol=1e-3
    )


def test_torch_is_an_extra(tmp_path, monkeypatch):
    write_pt(tmp_path / "f.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"transduce\[torch\]"):
        open_features(tmp_path / "f.pt")


def test_names_labels_and_class_embeddings_by_option(tmp_path):
    np.savez(tmp_path / "f.npz", x=ROWS, y=np.array([0, 1, 1, 0, 1]), words=unit(2, 9))
    (tmp_path / "names.csv").write_text("file_name,size\n" + "".join(f"{k},1\n" for k in KEYS))
    store = import_features(
        tmp_path / "f.npz",
        tmp_path / "store",
        array="x",
        names=str(tmp_path / "names.csv"),
        labels="y",
        classes="cat,dog",
        class_embeddings="words",
    )
    assert store.keys() == KEYS
    assert (tmp_path / "store" / "labels.csv").read_text().splitlines()[:3] == [
        "file_name,label",
        "0.jpg,cat",
        "1.jpg,dog",
    ]
    encoder = load_encoder(f"precomputed:{tmp_path / 'store'}")
    assert encoder.identity == store.identity
    classes = encoder.embed_classes(["cat", "dog"])
    np.testing.assert_allclose(classes, unit(2, 9), atol=1e-6)
    assert Task.from_embeddings(store, classes).query.shape == (5, 2)


def test_usual_names_need_no_option(tmp_path):
    texts = unit(2, 9)
    path = write_npz(
        tmp_path / "f.npz",
        labels=np.array(["dog"] * 5),
        classes=np.array(["cat", "dog"]),
        class_embeddings=texts,
    )
    import_features(path, tmp_path / "store")
    assert (tmp_path / "store" / "labels.csv").read_text().count("dog") == 5
    assert (tmp_path / "store" / "texts.npz").is_file()
    assert FeatureStore.open(tmp_path / "store").keys() == KEYS


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"array": "embedding"}, UnknownName, "did you mean 'embeddings'"),
        ({"names": "nowhere"}, UnknownName, "an array or a file of names"),
        ({"labels": "short"}, InvalidStore, "a label for each of 5 rows, found 2"),
        ({"labels": "numbers", "classes": "cat,dog"}, UnknownName, "class as a label, found '2'"),
        ({"class_embeddings": "words"}, InvalidStore, "Expected the classes"),
        ({"class_embeddings": "words", "classes": "a,b,c"}, InvalidStore, r"shape \(3, 6\)"),
    ],
)
def test_options_that_do_not_fit_leave_nothing_behind(tmp_path, options, error, words):
    write_npz(tmp_path / "f.npz", short=np.arange(2), numbers=np.arange(5), words=unit(2))
    with pytest.raises(error, match=words):
        import_features(tmp_path / "f.npz", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
