import io
import tarfile
import zipfile

import pytest

from transduce.benchmark.datasets.unpack import unpack
from transduce.errors import InvalidDataset

FILES = {"set/images/a.jpg": b"1", "set/images/deep/b.jpg": b"2", "set/labels/c.txt": b"3"}


def tar_of(files, mode="w:gz"):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as tape:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tape.addfile(member, io.BytesIO(content))
    return data.getvalue()


def zip_of(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        opened.writestr("set/", "")
        for name, content in files.items():
            opened.writestr(name, content)
    return data.getvalue()


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_the_wanted_folder_becomes_the_place(tmp_path, pack):
    archive = tmp_path / "archive"
    archive.write_bytes(pack(FILES))
    place = tmp_path / "data" / "images"
    assert unpack(archive, ("set/images",), place) == 2
    assert contents(place) == {"a.jpg": b"1", "deep/b.jpg": b"2"}
    assert [path.name for path in place.parent.iterdir()] == ["images"]


def test_an_archive_inside_an_archive(tmp_path):
    archive = tmp_path / "outer.zip"
    archive.write_bytes(zip_of({"outer/inner.tar.gz": tar_of(FILES), "outer/other.txt": b""}))
    place = tmp_path / "images"
    assert unpack(archive, ("outer/inner.tar.gz", "set/images"), place) == 2
    assert contents(place) == {"a.jpg": b"1", "deep/b.jpg": b"2"}


@pytest.mark.parametrize("name", ["../escaped.jpg", "/tmp/escaped.jpg", "set/../../escaped.jpg"])
@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_nothing_is_written_outside(tmp_path, pack, name):
    archive = tmp_path / "archive"
    archive.write_bytes(pack(FILES | {name: b"!"}))
    with pytest.raises(InvalidDataset, match="do not trust it"):
        unpack(archive, ("set/images",), tmp_path / "data" / "images")
    assert list((tmp_path / "data").iterdir()) == []
    assert not list(tmp_path.rglob("escaped.jpg"))


def test_links_are_left_out(tmp_path):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tape:
        link = tarfile.TarInfo("set/images/link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tape.addfile(link)
        member = tarfile.TarInfo("set/images/a.jpg")
        tape.addfile(member, io.BytesIO())
    (tmp_path / "a.tar").write_bytes(data.getvalue())
    assert unpack(tmp_path / "a.tar", ("set/images",), tmp_path / "images") == 1
    assert list(contents(tmp_path / "images")) == ["a.jpg"]


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_damaged_archive_leaves_nothing(tmp_path, pack):
    whole = pack({f"set/images/{n}.jpg": bytes([n]) * 5000 for n in range(50)})
    archive = tmp_path / "archive"
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidDataset, match=r"a whole archive in .*get it again"):
        unpack(archive, ("set/images",), tmp_path / "data" / "images")
    assert list((tmp_path / "data").iterdir()) == []


def test_another_archive_is_told_by_what_it_holds(tmp_path):
    (tmp_path / "a.tgz").write_bytes(tar_of(FILES))
    with pytest.raises(InvalidDataset, match=r"Expected jpg in a.tgz, found only set"):
        unpack(tmp_path / "a.tgz", ("jpg",), tmp_path / "jpg")


def test_what_is_there_is_not_touched(tmp_path):
    (tmp_path / "a.tgz").write_bytes(tar_of(FILES))
    place = tmp_path / "images"
    place.mkdir()
    (place / "mine.jpg").write_bytes(b"mine")
    with pytest.raises(InvalidDataset, match="move it away"):
        unpack(tmp_path / "a.tgz", ("set/images",), place)
    assert contents(place) == {"mine.jpg": b"mine"}
    (place / "mine.jpg").unlink()
    assert unpack(tmp_path / "a.tgz", ("set/images",), place) == 2
