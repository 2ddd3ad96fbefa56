import json

import pytest

from tests.benchmark.datasets.miniatures import (
    CARD,
    CLASSES,
    SPLIT_FILE,
    draw_aircraft,
    draw_coop,
    draw_imagenet,
    draw_picture,
    rows,
)
from transduce.benchmark.datasets import load_dataset
from transduce.benchmark.datasets.card import parse_card
from transduce.benchmark.datasets.dataset import load_card
from transduce.benchmark.datasets.layouts import read_split_file
from transduce.errors import InvalidDataset, MissingData

TINY = parse_card("tiny", CARD)


def test_coops_split_file_is_read(tmp_path):
    draw_coop(tmp_path)
    dataset = load_card(TINY, tmp_path)
    assert dataset.classes == tuple(CLASSES)
    assert {split: len(samples) for split, samples in dataset.samples.items()} == TINY.counts
    assert dataset.samples["val"][1] == ("red fox/val_0.jpg", 1)
    assert all((dataset.root / s.path).is_file() for s in dataset.samples["test"])
    assert dataset.class_names.labels == tuple(CLASSES)
    assert dataset.class_names.prompts == ("tabby cat", "red fox", "Gray Wolf")


def test_the_images_of_a_split_can_be_embedded_under_their_paths(tmp_path):
    draw_coop(tmp_path)
    dataset = load_card(TINY, tmp_path)
    found = dataset.listing(["val"])
    assert [entry.key for entry in found.entries] == [
        "Gray Wolf/val_0.jpg", "red fox/val_0.jpg", "tabby_cat/val_0.jpg",
    ]  # fmt: skip
    assert not any(entry.problem for entry in found.entries)
    assert len(dataset.listing().entries) == 15


def test_fgvcs_lists_are_read(tmp_path):
    draw_aircraft(tmp_path)
    dataset = load_dataset("fgvc_aircraft", tmp_path)
    assert dataset.classes == ("707-320", "A330-200", "Boeing 717")
    assert dataset.samples["val"] == (("0000004.jpg", 2), ("0000005.jpg", 1), ("0000006.jpg", 0))
    assert (dataset.root / "0000004.jpg").is_file()


def test_imagenets_folders_are_read(tmp_path):
    folder = draw_imagenet(tmp_path)
    dataset = load_dataset("imagenet", tmp_path)
    # In the order of their folders' names, whatever that of the list; `val` is the test split.
    assert dataset.classes == ("tench", "goldfish", "crane bird")
    assert [sample.label for sample in dataset.samples["test"]] == [0, 1, 2]
    assert dataset.samples["test"][0].path == "val/n01440764/one.JPEG"
    assert len(dataset.samples["train"]) == 6
    assert (dataset.root / dataset.samples["train"][5].path).is_file()
    for file in (folder / "images" / "train").rglob("*.JPEG"):
        file.unlink()
    for empty in (folder / "images" / "train").iterdir():
        empty.rmdir()
    with pytest.raises(MissingData, match=r"images of a class in .*n01440764"):
        load_dataset("imagenet", tmp_path)
    assert list(load_dataset("imagenet", tmp_path, splits=["test"]).samples) == ["test"]


def test_a_folder_of_ones_own_is_a_dataset(tmp_path):
    for name in ("cat", "dog"):
        for number in range(2):
            draw_picture(tmp_path / name / f"{number}.png", number)
    draw_picture(tmp_path / "dog" / "puppies" / "deep.jpg")
    (tmp_path / "dog" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    dataset = load_dataset(f"folder:{tmp_path}")
    assert dataset.classes == ("cat", "dog")
    assert dataset.samples == {
        "test": (
            ("cat/0.png", 0), ("cat/1.png", 0),
            ("dog/0.png", 1), ("dog/1.png", 1), ("dog/puppies/deep.jpg", 1),
        )
    }  # fmt: skip
    assert dataset.template == "a photo of a {}."
    with pytest.raises(MissingData, match=r"a train split in .*found test; make"):
        load_dataset(f"folder:{tmp_path}", splits=["train"])


def test_a_folder_may_have_splits(tmp_path):
    for place in ("train/cat", "train/dog", "test/cat", "test/fox"):
        draw_picture(tmp_path / place / "one.jpg")
    dataset = load_dataset(f"folder:{tmp_path}")
    assert dataset.classes == ("cat", "dog", "fox")
    assert dataset.samples == {
        "train": (("train/cat/one.jpg", 0), ("train/dog/one.jpg", 1)),
        "test": (("test/cat/one.jpg", 0), ("test/fox/one.jpg", 2)),
    }


def test_a_class_may_be_called_train(tmp_path):
    for name in ("train", "ship"):
        draw_picture(tmp_path / name / "one.jpg")
    assert load_dataset(f"folder:{tmp_path}").classes == ("ship", "train")


def test_a_folder_that_is_no_dataset_is_refused(tmp_path):
    with pytest.raises(MissingData, match="found none there"):
        load_dataset(f"folder:{tmp_path / 'nowhere'}")
    draw_picture(tmp_path / "only" / "one.jpg")
    with pytest.raises(InvalidDataset, match=r"at least 2 class folders in .* found only"):
        load_dataset(f"folder:{tmp_path}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found["val"][0].__setitem__(0, "../../etc/passwd"), "found '../../etc"),
        (lambda found: found["val"][0].__setitem__(0, "/etc/passwd"), "below the dataset's"),
        (lambda found: found["val"][0].__setitem__(2, "dog"), "one name for class 0 .* and 'dog'"),
        (lambda found: found["val"][0].__setitem__(1, 7), r"without gaps in .*found labels \[0, 1"),
        (lambda found: found["val"][0].__setitem__(1, "0"), "found something else"),
        (lambda found: found["val"][0].pop(), "found something else"),
        (lambda found: found.pop("val"), "found no val"),
    ],
)
def test_a_bad_split_file_is_refused(tmp_path, change, told):
    found = rows()
    change(found)
    path = tmp_path / SPLIT_FILE
    path.write_text(json.dumps(found))
    with pytest.raises(InvalidDataset, match=told):
        read_split_file(path)


@pytest.mark.parametrize("text", ["<html>", "[1, 2]", '"text"', '{"train": 3}'])
def test_what_is_no_split_file_is_refused(tmp_path, text):
    path = tmp_path / SPLIT_FILE
    path.write_text(text)
    with pytest.raises(InvalidDataset, match="download it again"):
        read_split_file(path)


def test_bad_lists_are_refused(tmp_path):
    folder = draw_aircraft(tmp_path)
    (folder / "images_variant_val.txt").write_text("0000004 Concorde\n")
    with pytest.raises(InvalidDataset, match=r"one of 3 classes .* found '0000004 Concorde'"):
        load_dataset("fgvc_aircraft", tmp_path)
    (folder / "images_variant_val.txt").unlink()
    with pytest.raises(MissingData, match=r"images_variant_val.txt, found no such file"):
        load_dataset("fgvc_aircraft", tmp_path)
    folder = draw_imagenet(tmp_path)
    (folder / "classnames.txt").write_text("n01440764\n")
    with pytest.raises(InvalidDataset, match="lines such as 'n01440764 tench'"):
        load_dataset("imagenet", tmp_path)
    (folder / "classnames.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidDataset, match="Expected text in"):
        load_dataset("imagenet", tmp_path)


def test_a_dataset_that_is_not_here_says_how_to_get_it(tmp_path):
    with pytest.raises(MissingData, match=f"transduce data prepare dtd --data {tmp_path}"):
        load_dataset("dtd", tmp_path)
