import json

import pytest

from tests.benchmark.datasets.miniatures import CARD, SPLIT_FILE, draw_coop, draw_picture, rows
from transduce.benchmark.datasets import CARDS
from transduce.benchmark.datasets.card import parse_card
from transduce.benchmark.datasets.verify import check_index, dataset_status, verify_dataset
from transduce.errors import InvalidDataset, UnknownName

TINY = parse_card("tiny", CARD)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.benchmark.datasets.verify.CARDS", {"tiny": TINY})
    return draw_coop(tmp_path)


def test_the_state_tells_what_is_missing(tmp_path):
    assert dataset_status(TINY, tmp_path).state == "absent"
    folder = draw_coop(tmp_path)
    assert dataset_status(TINY, tmp_path).state == "present"
    (folder / SPLIT_FILE).unlink()
    presence = dataset_status(TINY, tmp_path)
    assert (presence.state, presence.missing) == ("incomplete", (SPLIT_FILE,))


def test_a_whole_dataset_has_no_problems(tiny, tmp_path):
    found = verify_dataset("tiny", tmp_path)
    assert found.problems == ()
    assert (found.classes, found.counts) == (3, {"train": 6, "val": 3, "test": 6})
    assert found.root == tiny / "images"


def test_missing_and_empty_images_are_told(tiny, tmp_path):
    (tiny / "images" / "red fox" / "val_0.jpg").unlink()
    (tiny / "images" / "red fox" / "test_1.jpg").write_bytes(b"")
    problems = verify_dataset("tiny", tmp_path).problems
    assert len(problems) == 2
    assert problems[0].startswith("val: 1 images missing, such as red fox/val_0.jpg in")
    assert problems[1].startswith("test: 1 empty files, such as red fox/test_1.jpg")


def test_wrong_counts_are_told(tiny, tmp_path):
    found = rows()
    del found["test"][-1]
    (tiny / SPLIT_FILE).write_text(json.dumps(found))
    assert verify_dataset("tiny", tmp_path).problems == ("test: Expected 6 images, found 5.",)
    with pytest.raises(InvalidDataset, match=r"Expected 6 train, 3 val, 6 test in .* 5 test"):
        check_index(TINY, tiny / SPLIT_FILE)


def test_an_absent_dataset_is_one_problem(tmp_path):
    (problem,) = verify_dataset("dtd", tmp_path).problems
    assert "transduce data prepare dtd" in problem
    with pytest.raises(UnknownName, match="did you mean 'dtd'"):
        verify_dataset("dtdd", tmp_path)


def test_a_missing_split_file_is_told_once(tiny, tmp_path):
    (tiny / SPLIT_FILE).unlink()
    found = verify_dataset("tiny", tmp_path)
    assert found.problems == (f"Expected {tiny / SPLIT_FILE}, found no such file.",)
    assert (found.classes, found.counts) == (0, {})


def test_a_folder_of_ones_own_is_verified(tmp_path):
    draw_picture(tmp_path / "cat" / "one.jpg")
    (tmp_path / "dog").mkdir()
    found = verify_dataset(f"folder:{tmp_path}", tmp_path)
    assert found.counts == {"test": 1}
    assert found.problems == ("test: 1 classes without images, such as dog",)


def test_a_class_list_of_another_length_is_refused(tmp_path):
    path = tmp_path / "classnames.txt"
    path.write_text("n01440764 tench\n")
    with pytest.raises(InvalidDataset, match=r"Expected 1,000 classes .* found 1"):
        check_index(CARDS["imagenet"], path)
