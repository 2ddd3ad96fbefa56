import json
import os
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.features.stores import assert_same_store, contents
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import encoded, picture, write_pictures
from transduce.errors import EncoderMismatch, InvalidSetting, InvalidStore, TransduceError
from transduce.features.embedding import Resources, embed
from transduce.features.planning import Plan, lock
from transduce.features.store import FeatureStore
from transduce.features.verification import verify_store
from transduce.images.decoding import Decoding, decode

ONE = Resources(workers=1)


@dataclass(frozen=True)
class Report:
    """The store that a run returned, and what the run did."""

    store: FeatureStore
    plan: Plan

    @property
    def meta(self):
        return self.store.meta

    @property
    def embedded_now(self):
        return sum(shard.rows for shard in self.meta.shards if shard.index in self.plan.pending)

    @property
    def reasons(self):
        return Counter(skip.reason for skip in self.store.skipped())


def run(source, out, encoder=None, **options):
    plans = []

    def watch(plan):
        plans.append(plan)
        return nullcontext(lambda images: None)

    options = {"batch_size": 4, "resources": ONE, "shard_size": 8, "watch": watch, **options}
    return Report(embed(str(source), encoder or TinyEncoder(), out=out, **options), plans[0])


@pytest.fixture
def photos(tmp_path):
    return write_pictures(tmp_path / "photos", 20)


def test_rows_are_the_embeddings_of_their_files(photos, tmp_path):
    report = run(photos, tmp_path / "feats")
    store = FeatureStore.open(tmp_path / "feats")
    assert (report.meta.rows, report.meta.skipped) == (20, 0)
    assert store.keys() == [f"{number:05d}.jpg" for number in range(20)]
    how = Decoding(TinyEncoder().preprocessing)
    pixels = np.stack([decode(encoded(picture(n)), how).pixels for n in range(20)])
    batches = [TinyEncoder().embed_images(pixels[start : start + 4]) for start in range(0, 20, 4)]
    np.testing.assert_array_equal(
        store.embeddings(), np.concatenate(batches).astype(np.float16).astype(np.float32)
    )
    assert [len(block) for block in store.blocks(rows=5)] == [5, 3, 5, 3, 4]
    assert verify_store(tmp_path / "feats").problems == ()


def test_every_row_is_embedded_or_skipped_exactly_once(photos, tmp_path):
    (photos / "00003.jpg").write_bytes(b"")
    (photos / "00007.jpg").write_bytes(b"not a picture")
    (photos / "00008.jpg").write_bytes(encoded(picture(8, (90, 80)))[:-100])
    (photos / "00010.jpg").write_bytes((photos / "00002.jpg").read_bytes())
    report = run(photos, tmp_path / "feats")
    store = FeatureStore.open(tmp_path / "feats")
    skipped = {skip.file_name: skip.reason for skip in store.skipped()}
    assert skipped == {
        "00003.jpg": "empty", "00007.jpg": "not an image", "00008.jpg": "truncated"
    }  # fmt: skip
    assert sorted([*store.keys(), *skipped]) == [f"{number:05d}.jpg" for number in range(20)]
    assert dict(report.reasons) == {"empty": 1, "not an image": 1, "truncated": 1}
    assert report.meta.skipped == 3
    same = dict(zip(store.keys(), store.duplicates_of(), strict=True))
    assert {key: first for key, first in same.items() if first} == {"00010.jpg": "00002.jpg"}
    assert (tmp_path / "feats" / "duplicates.csv").read_text() == (
        "file_name,duplicate_of\n00010.jpg,00002.jpg\n"
    )
    assert report.meta.duplicates == 1


def test_a_source_of_broken_files_alone_gives_an_empty_store(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(9):
        (tmp_path / "photos" / f"{number}.jpg").write_bytes(b"")
    report = run(tmp_path / "photos", tmp_path / "feats")
    assert (report.meta.rows, report.meta.skipped) == (0, 9)
    assert FeatureStore.open(tmp_path / "feats").embeddings().shape == (0, 8)


def test_workers_do_not_change_a_byte(photos, tmp_path):
    (photos / "00003.jpg").write_bytes(b"")
    run(photos, tmp_path / "one")
    run(photos, tmp_path / "four", resources=Resources(workers=4))
    assert_same_store(tmp_path / "one", tmp_path / "four")


class Interrupting(TinyEncoder):
    """Is stopped by Ctrl-C in a given call."""

    def embed_images(self, pixels):
        if len(self.calls) == 3:
            raise KeyboardInterrupt
        return super().embed_images(pixels)


def test_interrupted_and_resumed_is_the_same_store(photos, tmp_path):
    run(photos, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(photos, tmp_path / "parts", Interrupting())
    with pytest.raises(InvalidStore, match="unfinished one with 1 shard done"):
        FeatureStore.open(tmp_path / "parts")
    unfinished = verify_store(tmp_path / "parts")
    assert unfinished.rows == 8
    assert [problem.split(":")[0] for problem in unfinished.problems] == ["unfinished"]
    encoder = TinyEncoder()
    report = run(photos, tmp_path / "parts", encoder)
    assert report.embedded_now == 12
    assert encoder.calls == [4, 4, 4]  # the finished shard was not embedded again
    assert_same_store(tmp_path / "whole", tmp_path / "parts")


def test_a_complete_store_is_left_alone(photos, tmp_path):
    run(photos, tmp_path / "feats")
    before = contents(tmp_path / "feats")
    encoder = TinyEncoder()
    assert run(photos, tmp_path / "feats", encoder).embedded_now == 0
    assert encoder.calls == []
    assert contents(tmp_path / "feats") == before


def test_a_lost_shard_is_made_again(photos, tmp_path):
    run(photos, tmp_path / "feats")
    before = contents(tmp_path / "feats")
    (tmp_path / "feats" / "img_emb" / "img_emb_0001.npy").unlink()
    assert run(photos, tmp_path / "feats").embedded_now == 8
    assert contents(tmp_path / "feats") == before


def test_changed_source_is_told_and_refused(photos, tmp_path):
    run(photos, tmp_path / "feats")
    write_pictures(photos, 1, first=90)
    (photos / "00001.jpg").unlink()
    (photos / "00002.jpg").write_bytes(encoded(picture(50)) + b"longer")
    with pytest.raises(InvalidStore) as caught:
        run(photos, tmp_path / "feats")
    message = str(caught.value)
    assert "1 new (00090.jpg), 1 gone (00001.jpg), 1 changed (00002.jpg)" in message
    assert "--if-changed extend" in message


def test_extending_adds_shards_and_keeps_the_rest(photos, tmp_path):
    run(photos, tmp_path / "feats")
    before = contents(tmp_path / "feats")
    write_pictures(photos / "a", 3, first=90)
    report = run(photos, tmp_path / "feats", if_changed="extend")
    assert (report.meta.rows, report.embedded_now) == (23, 3)
    store = FeatureStore.open(tmp_path / "feats")
    assert store.keys()[20:] == ["a/00090.jpg", "a/00091.jpg", "a/00092.jpg"]
    after = contents(tmp_path / "feats")
    assert all(after[name] == before[name] for name in before if name.startswith("img_emb/"))
    assert verify_store(tmp_path / "feats").problems == ()
    assert run(photos, tmp_path / "feats").embedded_now == 0  # nothing has changed any more


def test_keeping_goes_on_with_the_old_list(photos, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(photos, tmp_path / "feats", Interrupting())
    write_pictures(photos, 1, first=90)
    (photos / "00019.jpg").unlink()
    report = run(photos, tmp_path / "feats", if_changed="keep")
    assert (report.meta.rows, dict(report.reasons)) == (19, {"missing": 1})


def test_another_encoder_of_the_same_width_is_refused(photos, tmp_path):
    run(photos, tmp_path / "feats")
    with pytest.raises(EncoderMismatch, match=r"weights 0123 in .* but 4567"):
        run(photos, tmp_path / "feats", TinyEncoder(weights="4567"))


def test_other_settings_are_refused(photos, tmp_path):
    run(photos, tmp_path / "feats")
    with pytest.raises(InvalidSetting, match="Expected batch_size 4 as when"):
        run(photos, tmp_path / "feats", batch_size=5)
    with pytest.raises(InvalidSetting, match="Expected decoding exact as when"):
        run(photos, tmp_path / "feats", fast_decode=True)


def test_a_foreign_folder_is_refused(photos, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    with pytest.raises(InvalidStore, match=r"found 'chapter1\.tex'; choose another --out"):
        run(photos, tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "precious"


def test_a_second_run_at_the_same_time_is_refused(photos, tmp_path):
    with lock(tmp_path / "feats"), pytest.raises(InvalidStore, match="found another run writing"):
        run(photos, tmp_path / "feats")


class Broken(TinyEncoder):
    """Gives NaN for one picture and zeros for another."""

    def embed_images(self, pixels):
        rows = super().embed_images(pixels)
        if len(self.calls) == 2:
            rows[1], rows[2] = np.nan, 0.0
        return rows


def test_rows_without_a_direction_are_skipped(photos, tmp_path):
    report = run(photos, tmp_path / "feats", Broken())
    assert dict(report.reasons) == {"no embedding": 2}
    store = FeatureStore.open(tmp_path / "feats")
    assert [skip.file_name for skip in store.skipped()] == ["00005.jpg", "00006.jpg"]
    assert np.isfinite(store.embeddings()).all()
    assert len(store.keys()) == len(store.embeddings()) == 18


class OutOfMemory(TinyEncoder):
    def embed_images(self, pixels):
        raise MemoryError


def test_out_of_memory_says_the_batch_size_to_try(photos, tmp_path):
    with pytest.raises(TransduceError, match=r"begin again .* with --batch-size 2"):
        run(photos, tmp_path / "feats", OutOfMemory())
    # No shard was finished, so the same folder may be begun with other settings.
    run(photos, tmp_path / "feats", batch_size=2)


class WrongWidth(TinyEncoder):
    def embed_images(self, pixels):
        return super().embed_images(pixels)[:, :5]


def test_an_encoder_of_another_width_than_it_says_is_refused(photos, tmp_path):
    with pytest.raises(TransduceError, match=r"Expected embeddings of shape \(4, 8\)"):
        run(photos, tmp_path / "feats", WrongWidth())


def test_nothing_of_the_machine_or_the_time_is_stored(photos, tmp_path):
    run(photos, tmp_path / "feats")
    meta = json.loads((tmp_path / "feats" / "meta.json").read_text())
    assert set(meta) == {
        "format", "version", "dtype", "identity", "settings", "source", "complete", "rows",
        "skipped", "duplicates", "shards", "parts", "files", "sha256",
    }  # fmt: skip
    assert os.uname().nodename not in json.dumps(replace_paths(meta))


def replace_paths(meta):
    return {name: value for name, value in meta.items() if name != "source"}


def test_a_file_url_goes_the_whole_way(photos, tmp_path):
    run(photos, tmp_path / "plain")
    run(f"file://{photos}", tmp_path / "url")
    plain, url = FeatureStore.open(tmp_path / "plain"), FeatureStore.open(tmp_path / "url")
    np.testing.assert_array_equal(plain.embeddings(), url.embeddings())
    assert plain.keys() == url.keys()


def test_resources_are_checked():
    with pytest.raises(InvalidSetting, match="workers >= 0"):
        Resources(workers=-1)
    with pytest.raises(InvalidSetting, match="positive time limit"):
        replace(ONE, time_limit=0.0)
    with pytest.raises(InvalidSetting, match="positive batch size"):
        embed("photos", TinyEncoder(), batch_size=0)
