import hashlib
import json
from dataclasses import replace

import pytest

from tests.benchmark.datasets.miniatures import CARD, SPLIT_FILE, draw_coop, rows
from tests.benchmark.datasets.test_unpack import tar_of
from transduce.benchmark.datasets.card import parse_card
from transduce.benchmark.datasets.prepare import carry_out, steps
from transduce.benchmark.datasets.verify import _verify_card
from transduce.errors import DownloadFailed, InvalidDataset, MissingData

DOWNLOADS = """
[[downloads]]
file = "tiny.tgz"
target = "images"
takes = ["tiny-1.0/images"]
url = "{archive_url}"
page = "https://example.org/tiny"
md5 = "{md5}"

[[downloads]]
file = "split_zhou_Tiny.json"
target = "split_zhou_Tiny.json"
url = "{split_url}"
page = "https://example.org/split"
"""


@pytest.fixture
def tiny(site, tmp_path):
    """The miniature on a server of our own, and its card."""
    drawn = draw_coop(tmp_path / "elsewhere") / "images"
    files = {f"tiny-1.0/images/{p.relative_to(drawn).as_posix()}": p.read_bytes()
             for p in sorted(drawn.rglob("*.jpg"))}  # fmt: skip
    site.files = {"tiny.tgz": tar_of(files), "split.json": json.dumps(rows()).encode()}
    md5 = hashlib.md5(site.files["tiny.tgz"], usedforsecurity=False).hexdigest()
    downloads = DOWNLOADS.format(
        archive_url=site.url("tiny.tgz"), split_url=site.url("split.json"), md5=md5
    )
    return parse_card("tiny", CARD + downloads)


def actions(card, data):
    return [step.action for step in steps(card, data)]


def test_from_nothing_to_a_verified_dataset(tiny, tmp_path):
    data = tmp_path / "data"
    assert actions(tiny, data) == ["download", "download"]
    for step in steps(tiny, data):
        carry_out(tiny, step)
    assert actions(tiny, data) == ["nothing", "nothing"]
    assert _verify_card(tiny, data).problems == ()
    for step in steps(tiny, data):
        carry_out(tiny, step)  # nothing is left to do


def test_an_archive_got_by_hand_is_used(site, tiny, tmp_path):
    archive = tmp_path / "data" / "downloads" / "tiny" / "tiny.tgz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(site.files["tiny.tgz"])
    step = steps(tiny, tmp_path / "data")[0]
    assert step.action == "unpack"
    carry_out(tiny, step)
    assert site.asked == []
    assert (tmp_path / "data" / "tiny" / "images" / "red fox").is_dir()


def test_a_wrong_archive_got_by_hand_is_refused(tiny, tmp_path):
    archive = tmp_path / "data" / "downloads" / "tiny" / "tiny.tgz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"a page saying sorry")
    with pytest.raises(DownloadFailed, match="damaged or another file"):
        carry_out(tiny, steps(tiny, tmp_path / "data")[0])
    assert not (tmp_path / "data" / "tiny").exists()


@pytest.mark.parametrize("sent", [b"Sorry.", b"\xff\xfe", b'{"train": []}', None])
def test_a_split_file_that_is_another_is_not_put_in_place(site, tiny, tmp_path, sent):
    fewer = rows()
    del fewer["test"][0]
    site.files["split.json"] = sent or json.dumps(fewer).encode()
    step = steps(tiny, tmp_path / "data")[1]
    with pytest.raises(InvalidDataset):
        carry_out(tiny, step)
    assert not step.target.exists()
    assert not step.archive.exists()


def test_what_takes_a_person_says_what_to_do(tmp_path):
    text = CARD + DOWNLOADS.replace('url = "{archive_url}"\n', "").format(split_url="", md5="")
    card = parse_card("tiny", text)
    assert actions(card, tmp_path) == ["by hand", "by hand"]
    archive, split = steps(card, tmp_path)
    with pytest.raises(MissingData, match=f"example.org/tiny and put it at {archive.archive}"):
        carry_out(card, archive)
    with pytest.raises(MissingData, match=f"get {SPLIT_FILE} .* and make {split.target} of it"):
        carry_out(card, split)


def test_a_card_of_one_archive_is_the_whole_folder(site, tmp_path):
    files = {"v1/data/images/a.jpg": b"1", "v1/data/split_zhou_Tiny.json": b"{}"}
    site.files["all.tgz"] = tar_of(files)
    download = ['file = "all.tgz"', 'target = "."', 'takes = ["v1/data"]']
    download.append(f'url = "{site.url("all.tgz")}"')
    card = parse_card("tiny", "\n".join([CARD, "[[downloads]]", *download]))
    (step,) = steps(card, tmp_path)
    carry_out(card, step)
    assert (tmp_path / "tiny" / "images" / "a.jpg").read_bytes() == b"1"
    assert actions(card, tmp_path) == ["nothing"]


def test_a_place_that_is_taken_is_told_before_the_download(site, tiny, tmp_path):
    card = replace(tiny, needs=("images/all", SPLIT_FILE), downloads=(tiny.downloads[0],))
    card = replace(card, downloads=(replace(card.downloads[0], target="."),))
    (tmp_path / "data" / "tiny" / "images").mkdir(parents=True)
    with pytest.raises(InvalidDataset, match="move it away"):
        carry_out(card, steps(card, tmp_path / "data")[0])
    assert site.asked == []
