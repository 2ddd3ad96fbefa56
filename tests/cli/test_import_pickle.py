import pickle
import sys

import numpy as np
import pytest

from transduce.cli.main import main
from transduce.features.store import FeatureStore


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["transduce", "import-pickle", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def features(tmp_path):
    rows = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    value = {"concat_features": rows, "concat_labels": np.arange(6), "file": np.ones(2)}
    (tmp_path / "test.plk").write_bytes(pickle.dumps(value))
    return rows


def test_to_npz_with_all_arrays(features, command, tmp_path):
    code, out, _ = command("test.plk", "--out", "test.npz")
    assert (code, out.splitlines()[-1]) == (0, "Wrote test.npz  3 arrays")
    with np.load(tmp_path / "test.npz") as found:
        np.testing.assert_array_equal(found["concat_features"], features)
        np.testing.assert_array_equal(found["concat_labels"], np.arange(6))
        np.testing.assert_array_equal(found["file"], np.ones(2))


def test_to_a_store(features, command):
    code, out, _ = command("test.plk", "--out", "feats", "--encoder", "open_clip:RN50/openai")
    assert (code, out.splitlines()[-1]) == (0, "Wrote feats/  6 rows x 4 numbers")
    store = FeatureStore.open("feats")
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(store.embeddings(), unit, atol=1e-3)
    assert store.identity.encoder == "open_clip:RN50/openai"


def test_unknown_array_and_code_are_exit_two(features, command, tmp_path):
    code, _, err = command("test.plk", "--out", "feats", "--array", "concat_feature")
    assert code == 2
    assert "did you mean 'concat_features'" in err
    (tmp_path / "bad.plk").write_bytes(b"cos\nsystem\n(S'touch was-run'\ntR.")
    code, _, err = command("bad.plk", "--out", "bad.npz")
    assert code == 2
    assert "found os.system; nothing was run" in err
    assert not (tmp_path / "was-run").exists()
    assert not (tmp_path / "bad.npz").exists()
