import pickle
from functools import partial

import numpy as np
import pytest

from transduce.features.store import FeatureStore


@pytest.fixture
def import_pickle(command):
    return partial(command, "import-pickle")


@pytest.fixture
def features(tmp_path):
    rows = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    value = {"concat_features": rows, "concat_labels": np.arange(6), "file": np.ones(2)}
    (tmp_path / "test.plk").write_bytes(pickle.dumps(value))
    return rows


def test_to_npz_with_all_arrays(features, import_pickle, tmp_path):
    code, out, _ = import_pickle("test.plk", "--out", "test.npz")
    assert (code, out.splitlines()[-1]) == (0, "Wrote test.npz  3 arrays")
    with np.load(tmp_path / "test.npz") as found:
        np.testing.assert_array_equal(found["concat_features"], features)
        np.testing.assert_array_equal(found["concat_labels"], np.arange(6))
        np.testing.assert_array_equal(found["file"], np.ones(2))


def test_to_a_store(features, import_pickle):
    code, out, _ = import_pickle("test.plk", "--out", "feats", "--encoder", "open_clip:RN50/openai")
    assert (code, out.splitlines()[-1]) == (0, "Wrote feats/  6 rows x 4 numbers")
    store = FeatureStore.open("feats")
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(store.embeddings(), unit, atol=1e-3)
    assert store.identity.encoder == "open_clip:RN50/openai"


def test_unknown_array_and_code_are_exit_two(features, import_pickle, tmp_path):
    code, _, err = import_pickle("test.plk", "--out", "feats", "--array", "concat_feature")
    assert code == 2
    assert "did you mean 'concat_features'" in err
    (tmp_path / "bad.plk").write_bytes(b"cos\nsystem\n(S'touch was-run'\ntR.")
    code, _, err = import_pickle("bad.plk", "--out", "bad.npz")
    assert code == 2
    assert "found os.system; nothing was run" in err
    assert not (tmp_path / "was-run").exists()
    assert not (tmp_path / "bad.npz").exists()
