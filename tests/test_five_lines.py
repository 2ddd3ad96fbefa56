"""From images to a prediction in five lines, as the README shows them, with the shapes encoder."""

import gc

import numpy as np
import pytest

from tests.images.pictures import write_pictures


def test_five_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    write_pictures(tmp_path / "photos", 6)
    monkeypatch.chdir(tmp_path)

    from transduce import HardEMDirichlet, Task, embed, load_encoder

    encoder = load_encoder("shapes")
    images = embed("photos/", encoder)
    classes = encoder.embed_classes(["red circle", "blue star", "green ring"])
    result = HardEMDirichlet().predict(Task.from_embeddings(images, classes))

    assert result.labels.shape == (6,)
    assert np.asarray(images).shape == (len(images), encoder.identity.dimension)
    np.testing.assert_array_equal(np.asarray(images, np.float64), images.embeddings())
    assert images.keys()[0] == "00000.jpg"
    with pytest.raises(ValueError, match="copy=None or True"):
        np.array(images, copy=False)

    folder = images.folder
    assert folder.is_dir()
    del images
    gc.collect()
    assert not folder.exists()


def test_a_store_without_out_is_removed_where_embedding_fails(tmp_path, monkeypatch):
    from transduce import embed

    class Broken:
        identity = property(lambda self: 1 / 0)

    write_pictures(tmp_path / "photos", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        embed(tmp_path / "photos", Broken())
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
