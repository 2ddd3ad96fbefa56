"""Two stores in one pass over the files are those of two passes."""

from contextlib import nullcontext

import pytest

from tests.features.test_extraction import write_pictures
from tests.features.tiny_encoder import TinyEncoder
from transduce.encoders.encoder import Preprocessing
from transduce.features import embedding
from transduce.features.embedding import Resources, embed
from transduce.features.layout import RECORDS
from transduce.features.pairs import embed_pair
from transduce.features.verification import verify_store
from transduce.images.sources import find_images

RESOURCES = Resources(workers=2)


def encoders():
    other = Preprocessing(size=12, resize_to=20, mean=(0.5,) * 3, crop="down")
    return TinyEncoder(), TinyEncoder("other", dimension=5, preprocessing=other)


def run(photos, folders):
    totals, settled = [], []

    def watch(plan):
        totals.append(plan.images_pending)
        return nullcontext(settled.append)

    both = encoders()
    stores = embed_pair(
        find_images(str(photos)), both, folders, batch_size=4, resources=RESOURCES, watch=watch
    )
    assert totals == [sum(settled)]
    return stores, both


@pytest.fixture
def photos(tmp_path):
    folder = write_pictures(tmp_path / "photos", 20)
    (folder / "00003.jpg").write_bytes(b"not an image")
    return folder


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".npy", ".parquet", ".csv")
    }


def test_the_stores_are_those_of_two_passes_and_files_are_read_once(photos, tmp_path, monkeypatch):
    passes, real = [], embedding.embed_together

    def counted(targets, *arguments):
        passes.append(len(targets))
        real(targets, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(embedding, "embed_together", counted)
        stores, _ = run(photos, (tmp_path / "a", tmp_path / "b"))
    assert passes == [2]
    assert stores[0].keys() == stores[1].keys()
    assert [skip.file_name for skip in stores[1].skipped()] == ["00003.jpg"]
    for store, encoder, name in zip(stores, encoders(), ("alone-a", "alone-b"), strict=True):
        embed(photos, encoder, out=tmp_path / name, batch_size=4, resources=RESOURCES)
        assert files(store.folder) == files(tmp_path / name)
        assert verify_store(store.folder).problems == ()


def test_a_store_that_lacks_shards_is_finished_alone(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.features.planning.FEWEST_ROWS", 8)
    folders = (tmp_path / "a", tmp_path / "b")
    run(photos, folders)
    whole = [files(folder) for folder in folders]
    for folder, shard in ((folders[0], 0), (folders[1], 0), (folders[1], 2)):
        next((folder / RECORDS).glob(f"*{shard}.json")).unlink()
    stores, both = run(photos, folders)
    assert [files(folder) for folder in folders] == whole
    assert sum(both[0].calls) == 7  # of shard 0; its fourth image cannot be read
    assert sum(both[1].calls) == 7 + 4
    assert len(stores[0]) == len(stores[1]) == 19
