import hashlib

import pytest

from transduce.benchmark.datasets.download import check_md5, download_file
from transduce.errors import DownloadFailed

CONTENT = bytes(range(256)) * 4000
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def file(site):
    site.files["pets.tgz"] = CONTENT
    return site.url("pets.tgz")


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_and_checked(site, file, tmp_path):
    told = []
    target = tmp_path / "new" / "pets.tgz"
    download_file(file, target, md5=MD5, progress=lambda *counts: told.append(counts))
    assert target.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert left_in(target.parent) == ["pets.tgz"]


def test_a_broken_line_is_gone_on_with(site, file, tmp_path):
    site.break_after = 300_000
    download_file(file, tmp_path / "pets.tgz", md5=MD5)
    assert (tmp_path / "pets.tgz").read_bytes() == CONTENT
    assert site.asked == [("/pets.tgz", None), ("/pets.tgz", "bytes=300000-")]


def test_a_later_run_goes_on_where_the_first_has_stopped(site, file, tmp_path):
    site.break_after = 300_000
    with pytest.raises(DownloadFailed, match="run it again to go on"):
        download_file(file, tmp_path / "pets.tgz", attempts=1)
    assert left_in(tmp_path) == ["pets.tgz.part", "pets.tgz.part.tag"]
    download_file(file, tmp_path / "pets.tgz")
    assert (tmp_path / "pets.tgz").read_bytes() == CONTENT
    assert site.asked[-1] == ("/pets.tgz", "bytes=300000-")
    assert left_in(tmp_path) == ["pets.tgz"]


@pytest.mark.parametrize("change", [{"tag": '"second"'}, {"ranges": False}])
def test_a_file_that_changed_or_cannot_be_cut_is_fetched_anew(site, file, tmp_path, change):
    site.break_after = 300_000
    with pytest.raises(DownloadFailed):
        download_file(file, tmp_path / "pets.tgz", attempts=1)
    for name, value in change.items():
        setattr(site, name, value)
    site.files["pets.tgz"] = CONTENT[::-1]
    download_file(file, tmp_path / "pets.tgz")
    assert (tmp_path / "pets.tgz").read_bytes() == CONTENT[::-1]


def test_without_a_tag_there_is_no_going_on(site, file, tmp_path):
    site.tag = ""
    site.break_after = 300_000
    download_file(file, tmp_path / "pets.tgz", md5=MD5)
    assert site.asked == [("/pets.tgz", None)] * 2


def test_a_whole_part_is_not_fetched_again(site, file, tmp_path):
    (tmp_path / "pets.tgz.part").write_bytes(CONTENT)
    (tmp_path / "pets.tgz.part.tag").write_text(site.tag)
    download_file(file, tmp_path / "pets.tgz", md5=MD5)
    assert (tmp_path / "pets.tgz").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_left(site, file, tmp_path):
    site.files["pets.tgz"] = CONTENT[:-1] + b"!"
    with pytest.raises(DownloadFailed, match=f"Expected pets.tgz with MD5 {MD5}, found"):
        download_file(file, tmp_path / "pets.tgz", md5=MD5)
    assert left_in(tmp_path) == []


def test_a_web_page_is_no_file(site, file, tmp_path):
    site.kind = "text/html; charset=utf-8"
    with pytest.raises(DownloadFailed, match="found a web page; open it in a browser"):
        download_file(file, tmp_path / "pets.tgz")
    assert left_in(tmp_path) == []
    assert len(site.asked) == 1


def test_what_is_not_there_is_told_at_once(site, tmp_path):
    with pytest.raises(DownloadFailed, match="HTTP Error 404"):
        download_file(site.url("cats.tgz"), tmp_path / "cats.tgz")
    assert len(site.asked) == 1


def test_nobody_answers(tmp_path):
    with pytest.raises(DownloadFailed, match=r"put the file at .*x.zip yourself"):
        download_file("http://127.0.0.1:9/x.zip", tmp_path / "x.zip")


def test_only_the_web_is_read(tmp_path):
    with pytest.raises(DownloadFailed, match="an http address, found 'file:///etc/passwd'"):
        download_file("file:///etc/passwd", tmp_path / "x")


def test_a_file_got_by_hand_is_checked(tmp_path):
    (tmp_path / "a.zip").write_bytes(CONTENT)
    check_md5(tmp_path / "a.zip", MD5)
    with pytest.raises(DownloadFailed, match="damaged or another file"):
        check_md5(tmp_path / "a.zip", "0" * 32)
