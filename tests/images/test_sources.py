import io
import os
import sys
import tarfile

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.images.pictures import encoded, picture, write_pictures
from transduce.errors import MissingExtra, NoImages, UnreachableSource
from transduce.images.decoding import read_bytes
from transduce.images.entries import Unreadable
from transduce.images.sources import find_images


@pytest.fixture
def photos(tmp_path):
    folder = write_pictures(tmp_path / "photos", 3)
    write_pictures(folder / "deeper" / "still", 1, first=7)
    (folder / "notes.txt").write_text("not a picture")
    (folder / ".hidden.jpg").write_bytes(b"x")
    write_pictures(folder / ".thumbnails", 2)
    (folder / "UPPER.JPG").write_bytes(encoded(picture()))
    return folder


def keys(found):
    return [entry.key for entry in found.entries]


def test_folder_is_recursive_sorted_and_without_hidden_files(photos):
    found = find_images(str(photos))
    assert keys(found) == [
        "00000.jpg",
        "00001.jpg",
        "00002.jpg",
        "UPPER.JPG",
        "deeper/still/00007.jpg",
    ]
    assert found.ignored == 1
    first = found.entries[0]
    assert first.path == str(photos / "00000.jpg")
    assert first.size == (photos / "00000.jpg").stat().st_size
    assert first.mtime == (photos / "00000.jpg").stat().st_mtime


def test_links_are_followed_but_not_in_circles(photos):
    (photos / "deeper" / "again").symlink_to(photos)
    (photos / "other").symlink_to(photos / "deeper" / "still")
    (photos / "dangling.jpg").symlink_to(photos / "nowhere.jpg")
    found = find_images(str(photos))
    assert "other/00007.jpg" in keys(found)
    assert len(found.entries) == 7
    problems = {entry.key: entry.problem for entry in found.entries if entry.problem}
    assert problems == {"dangling.jpg": "missing"}


def test_glob(photos):
    found = find_images(str(photos / "**" / "*.jpg"))
    assert len(found.entries) == 4
    assert find_images(str(photos / "*")).ignored == 1


def test_a_single_picture(photos):
    assert keys(find_images(str(photos / "00001.jpg"))) == ["00001.jpg"]


def test_text_list_is_relative_to_itself_and_keeps_its_order(photos):
    path = photos / "list.txt"
    path.write_text(
        f"# chosen by hand\n00002.jpg\n\n00000.jpg\ngone.jpg\n{photos}/00001.jpg\n00002.jpg\n"
    )
    found = find_images(str(path))
    assert keys(found) == ["00002.jpg", "00000.jpg", "gone.jpg", f"{photos}/00001.jpg", "00002.jpg"]
    assert [entry.problem for entry in found.entries] == ["", "", "missing", "", ""]


def test_csv_with_a_file_name_column(photos):
    (photos / "metadata.csv").write_text('﻿label,file_name\ncat,00001.jpg\n"a, b",UPPER.JPG\n')
    assert keys(find_images(str(photos / "metadata.csv"))) == ["00001.jpg", "UPPER.JPG"]


def test_parquet_with_a_file_name_column(photos):
    table = pa.table({"file_name": ["00001.jpg", "00000.jpg"], "label": [1, 2]})
    pq.write_table(table, photos / "metadata.parquet")
    assert keys(find_images(str(photos / "metadata.parquet"))) == ["00001.jpg", "00000.jpg"]


def test_table_without_the_column_says_what_it_has(photos):
    (photos / "metadata.csv").write_text("path,label\na.jpg,cat\n")
    with pytest.raises(NoImages, match=r"Expected a column 'file_name' in .*found path, label"):
        find_images(str(photos / "metadata.csv"))
    (photos / "broken.parquet").write_text("no parquet")
    with pytest.raises(NoImages, match="Expected a parquet file"):
        find_images(str(photos / "broken.parquet"))


def write_tar(path, names):
    with tarfile.open(path, "w") as archive:
        for number, name in enumerate(names):
            data = encoded(picture(number)) if name.endswith(".jpg") else b"caption"
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def test_webdataset_is_read_by_offset(tmp_path):
    path = write_tar(tmp_path / "00000.tar", ["000.jpg", "000.txt", "001.jpg", "001.json"])
    found = find_images(str(path))
    assert keys(found) == ["000.jpg", "001.jpg"]
    assert found.ignored == 2
    entry = found.entries[1]
    assert read_bytes(entry.path, entry.offset, entry.size) == encoded(picture(2))


def test_damaged_and_compressed_archives_are_refused(tmp_path):
    path = write_tar(tmp_path / "a.tar", ["000.jpg", "001.jpg"])
    data = path.read_bytes()
    path.write_bytes(data[:700])
    with pytest.raises(NoImages, match="Expected a whole tar archive"):
        find_images(str(path))
    (tmp_path / "a.tar.gz").write_bytes(b"")
    with pytest.raises(NoImages, match=r"Expected a plain \.tar, found the compressed"):
        find_images(str(tmp_path / "a.tar.gz"))


def test_no_images_says_what_was_looked_for(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoImages, match=r"found none in .* among its 1 file; give a folder"):
        find_images(str(tmp_path))
    with pytest.raises(NoImages, match=r"found nothing at .*phtoos; check the spelling"):
        find_images(str(tmp_path / "phtoos"))
    with pytest.raises(NoImages, match=r"found none in .*\*\.jpg"):
        find_images(str(tmp_path / "*.jpg"))
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(NoImages, match="Expected a list"):
        find_images(str(tmp_path / "model.bin"))


def test_names_that_are_not_utf8_and_pipes_have_a_reason(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.jpg")).write_bytes(encoded(picture()))
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "ok.jpg").write_bytes(encoded(picture()))
    found = find_images(str(tmp_path))
    problems = {entry.key: entry.problem for entry in found.entries}
    assert problems == {"caf\\xe9.jpg": "name is not UTF-8", "ok.jpg": ""}
    (tmp_path / "list.txt").write_text("pipe.jpg\n")
    assert find_images(str(tmp_path / "list.txt")).entries[0].problem == "not a file"


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    for number in range(3):
        system.pipe_file(f"/bucket/photos/{number}.jpg", encoded(picture(number)))
    system.pipe_file("/bucket/photos/notes.txt", b"text")
    yield system
    system.rm("/bucket", recursive=True)


def test_url_of_a_folder(memory):
    found = find_images("memory://bucket/photos")
    assert keys(found) == ["0.jpg", "1.jpg", "2.jpg"]
    assert found.ignored == 1
    entry = found.entries[2]
    assert entry.mtime > 0
    assert read_bytes(entry.path, entry.offset, entry.size) == encoded(picture(2))


def test_url_of_a_glob_and_of_an_archive(memory, tmp_path):
    assert len(find_images("memory://bucket/photos/*.jpg").entries) == 3
    data = write_tar(tmp_path / "a.tar", ["000.jpg", "000.txt", "001.jpg"]).read_bytes()
    memory.pipe_file("/bucket/a.tar", data)
    found = find_images("memory://bucket/a.tar")
    entry = found.entries[1]
    assert entry.key == "001.jpg"
    assert read_bytes(entry.path, entry.offset, entry.size) == encoded(picture(2))


def test_url_in_a_list(memory, tmp_path):
    (tmp_path / "list.txt").write_text("memory://bucket/photos/1.jpg\n")
    entry = find_images(str(tmp_path / "list.txt")).entries[0]
    assert read_bytes(entry.path, entry.offset, entry.size) == encoded(picture(1))


def test_url_without_pictures_or_protocol(memory):
    with pytest.raises(NoImages, match="found none in memory://bucket/nothing"):
        find_images("memory://bucket/nothing")
    with pytest.raises(UnreachableSource, match="Expected a URL that fsspec knows"):
        find_images("nonsense://bucket/photos")


def test_a_file_system_that_fails_is_told(memory, monkeypatch):
    def offline(*words, **options):
        raise RuntimeError("no route to host\nand a long story")

    monkeypatch.setattr(type(memory), "find", offline)
    with pytest.raises(UnreachableSource, match="found RuntimeError: no route to host; check"):
        find_images("memory://bucket/photos")
    monkeypatch.setattr(type(memory), "_open", offline)
    with pytest.raises(Unreadable, match="cannot be read: RuntimeError: no route"):
        read_bytes("memory://bucket/photos/0.jpg", None, 10)


def test_missing_plug_in_is_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[hf\]"'):
        find_images("hf://datasets/someone/photos")
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[s3\]"'):
        find_images("s3://bucket/photos")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[remote\]"'):
        find_images("gs://bucket/photos")


def write_table(path, pictures, names=None, **options):
    """As `datasets` writes a column of images."""
    column = [
        None if data is None else {"bytes": data, "path": names and names[row]}
        for row, data in enumerate(pictures)
    ]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"label": list(range(len(column))), "image": pa.array(column, kind)})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def test_pictures_inside_a_table_are_read_by_row(tmp_path):
    data = [encoded(picture(number)) for number in range(5)]
    names = [f"some/where/{number}.jpg" for number in range(5)]
    path = write_table(tmp_path / "train.parquet", data, names, row_group_size=2)
    found = find_images(str(path))
    assert keys(found)[3] == "train.parquet/000003/3.jpg"
    for row in (4, 0, 3, 1, 2):
        entry = found.entries[row]
        assert read_bytes(entry.path, entry.offset, entry.size) == data[row]


def test_plain_bytes_in_a_table_and_rows_without_a_picture(tmp_path):
    data = [encoded(picture(0)), None]
    pq.write_table(pa.table({"jpg": pa.array(data, pa.binary())}), tmp_path / "a.parquet")
    found = find_images(str(tmp_path / "a.parquet"))
    assert keys(found) == ["a.parquet/000000", "a.parquet/000001"]
    entry = found.entries[1]
    with pytest.raises(Unreadable, match="no bytes in this row"):
        read_bytes(entry.path, entry.offset, entry.size)


def test_a_folder_of_tables(tmp_path):
    write_table(tmp_path / "set/data/b.parquet", [encoded(picture(1))])
    write_table(tmp_path / "set/data/a.parquet", [encoded(picture(0))])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "set/other.parquet")
    found = find_images(str(tmp_path / "set"))
    assert keys(found) == ["data/a.parquet/000000", "data/b.parquet/000000"]
    assert found.ignored == 1


@pytest.mark.parametrize("url", ["memory://bucket/set", "memory://bucket/set/data/a.parquet"])
def test_tables_behind_a_url(memory, tmp_path, url):
    data = write_table(tmp_path / "a.parquet", [encoded(picture(0)), encoded(picture(1))])
    memory.pipe_file("/bucket/set/data/a.parquet", data.read_bytes())
    memory.pipe_file("/bucket/set/README.md", b"a card")
    entry = find_images(url).entries[1]
    assert entry.key.endswith("a.parquet/000001")
    assert read_bytes(entry.path, entry.offset, entry.size) == encoded(picture(1))


def test_a_phone_or_camera_folder(tmp_path):
    """Google Takeout, a camera's card, what file managers leave behind."""
    for name in ("IMG_1.JPG", "IMG_1.JPG.supplemental-metadata.json", "metadata.json", "IMG_1.MOV",
                 "IMG_2.HEIC", "IMG_2.AAE", "Thumbs.db", "desktop.ini", "._IMG_1.JPG", "notes.txt",
                 "DSC_3.NEF", "DSC_3.JPG", "DSC_4.nef", "clip.mp4",
                 "@eaDir/IMG_1.JPG", "__MACOSX/IMG_1.JPG", ".thumbnails/x.jpg"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = find_images(str(tmp_path))
    problems = {entry.key: entry.problem for entry in found.entries}
    raw = "RAW photo, not read: export it as JPEG"
    assert problems == {"DSC_3.JPG": "", "DSC_4.nef": raw, "IMG_1.JPG": "", "IMG_2.HEIC": ""}
    assert (found.videos, found.ignored) == (2, 3)


def test_raw_photos_and_videos_alone_are_refused_by_name(tmp_path):
    for name in ("a.CR2", "b.dng"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(NoImages, match=r"found only 2 RAW photos in .*export them as JPEG"):
        find_images(str(tmp_path))
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").write_bytes(b"x")
    with pytest.raises(NoImages, match=r"among its 1 file \(1 video: take frames out"):
        find_images(str(tmp_path / "films"))
