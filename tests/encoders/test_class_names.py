"""Class names: hygiene, files of every kind, and what is refused."""

import pytest

from transduce.encoders.class_names import (
    ClassNames,
    class_names_from,
    read_class_names,
    readable,
)
from transduce.errors import InvalidClasses, MissingExtra


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("AnnualCrop", "annual crop"),
        ("HerbaceousVegetation", "herbaceous vegetation"),
        ("annual_crop", "annual crop"),
        ("  Sea   Lake\t", "sea lake"),
        ("YoYo", "yo yo"),
        ("HTMLPage", "html page"),
        ("iPhone", "iphone"),
        ("McLaren MP4-12C Coupe 2012", "mclaren mp4-12c coupe 2012"),
        ("Apply_Eye_Makeup", "apply eye makeup"),
        ("t-shirt", "t-shirt"),
        ("Cafe\u0301", "caf\u00e9"),
        ("__", ""),
    ],
)
def test_readable(label, expected):
    assert readable(label) == expected


def test_labels_stay_as_written():
    classes = ClassNames.of([" AnnualCrop", "SeaLake"])
    assert classes.labels == ("AnnualCrop", "SeaLake")
    assert classes.prompts == ("annual crop", "sea lake")
    assert len(classes) == 2


def test_duplicates_are_listed():
    with pytest.raises(InvalidClasses) as caught:
        ClassNames.of(["SeaLake", "river", "sea_lake", "River", "forest"])
    assert "2 written more than once" in str(caught.value)
    assert "'sea lake' from 'SeaLake', 'sea_lake'" in str(caught.value)
    assert "'river' from 'river', 'River'" in str(caught.value)
    assert "forest" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([], "found none"), (["cat"], "only 'cat'"), (["cat", "_", "dog"], "number 2 of 3")],
)
def test_too_few_or_empty(labels, message):
    with pytest.raises(InvalidClasses, match=message):
        ClassNames.of(labels)


FILES = {
    "plain.txt": "# pets\ncat\n\n  BigDog \n",
    "bom.txt": "\ufeffcat\r\nBigDog\r\n",
    "column.csv": "cat\nBigDog\n",
    "header.csv": "id,class\n3,cat\n4,BigDog\n",
    "list.json": '["cat", "BigDog"]',
    "numbered.json": '{"1": "BigDog", "0": "cat"}',
    "under.json": '{"classes": ["cat", "BigDog"], "author": "me"}',
    "list.yaml": "- cat\n- BigDog\n",
    "yolo.yml": "path: data\nnames:\n  0: cat\n  1: BigDog\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file(tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    classes = class_names_from(str(tmp_path / name))
    assert classes.labels == ("cat", "BigDog")
    assert classes.prompts == ("cat", "big dog")


def test_ten_numbered_classes_keep_their_order(tmp_path):
    path = tmp_path / "classes.json"
    entries = ", ".join(f'"{i}": "class {chr(97 + i)}"' for i in range(12))
    path.write_text(f"{{{entries}}}")
    assert read_class_names(path).labels[:3] == ("class a", "class b", "class c")
    assert read_class_names(path).labels[-1] == "class l"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "label,prompt\nn02123045,tabby Cat\nn02099601,golden retriever\n"),
        ("a.json", '{"n02123045": "tabby Cat", "n02099601": "golden retriever"}'),
        ("a.yaml", "n02123045: tabby Cat\nn02099601: golden retriever\n"),
    ],
)
def test_prompts_given_in_the_file_are_kept(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    classes = read_class_names(tmp_path / name)
    assert classes.labels == ("n02123045", "n02099601")
    assert classes.prompts == ("tabby Cat", "golden retriever")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "x,y\n1,2\n", "a column class or label"),
        ("a.csv", "id,class\n3,cat,dog\n4,bird\n", "found 3 in row 2"),
        ("a.csv", "", "found none"),
        ("a.json", "[", "Expected JSON"),
        ("a.json", '"cat"', "found str"),
        ("a.json", '["cat", null]', "None"),
        ("a.yaml", "- yes\n- no\n", "put it in quotes"),
        ("a.yaml", "- [", "Expected YAML"),
        ("a.yaml", "!!python/object/apply:os.getcwd []", "Expected YAML"),
        ("a.txt", "cat\nCat\n", "'cat' from 'cat', 'Cat'"),
        ("a.xlsx", "cat", "rename it"),
        ("a.json", '{"n1": "cat", "n2": "dog", "n1": "fox"}', "each key once, found more of 'n1'"),
        ("a.yaml", "names:\n  n1: cat\n  n2: dog\n  n1: fox\n", "found more of 'n1'"),
        ("a.csv", "label,prompt\nn1,cat\nn2,dog\nn1,fox\n", "more than once: 'n1'"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidClasses, match=message) as caught:
        read_class_names(tmp_path / name)
    assert name in str(caught.value)


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_bytes(b"\xff\xfe\x00c\x00a\x00t")
    with pytest.raises(InvalidClasses, match="save it as UTF-8"):
        read_class_names(path)


def test_a_missing_file_is_not_taken_for_a_class():
    with pytest.raises(InvalidClasses, match=r"found no pets\.txt"):
        class_names_from("pets.txt")


def test_names_with_commas_between():
    assert class_names_from("cat, dog,,Fox").labels == ("cat", "dog", "Fox")


def test_yaml_without_its_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    (tmp_path / "a.yaml").write_text("- cat\n- dog\n")
    with pytest.raises(MissingExtra, match="pip install --upgrade transduce"):
        read_class_names(tmp_path / "a.yaml")


def test_a_class_may_have_several_names(tmp_path):
    file = tmp_path / "classes.json"
    file.write_text('{"dog": ["dog", "puppy", "GoldenRetriever"], "cat": "cat"}')
    classes = read_class_names(file)
    assert classes.labels == ("dog", "cat")
    assert classes.prompts == ("dog | puppy | golden retriever", "cat")
    assert classes.alternatives == (("dog", "puppy", "golden retriever"), ("cat",))
