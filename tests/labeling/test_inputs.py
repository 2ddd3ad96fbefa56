"""What a run starts from is checked before any image is opened."""

from dataclasses import replace

import pytest

from transduce.encoders.class_names import ClassNames
from transduce.errors import InvalidFile, InvalidSetting, UnknownName
from transduce.labeling import embedder, inputs, known_labels
from transduce.labeling.inputs import folder_labels
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import UNKNOWN, LabelSettings


def test_folders_name_the_class_of_a_shot():
    classes = ClassNames.of(["AnnualCrop", "sea lake"])
    labels = folder_labels(["annual_crop/a.jpg", "AnnualCrop/b/c.jpg", "sea lake/d.jpg"], classes)
    assert list(labels.values()) == [0, 0, 1]
    with pytest.raises(UnknownName, match="did you mean 'sea lake'"):
        folder_labels(["sea_lakes/x.jpg"], classes)
    with pytest.raises(InvalidFile, match="beside them"):
        folder_labels(["x.jpg"], classes)


@pytest.fixture
def settings(tmp_path):
    """Settings of three images that cannot be decoded, with a support folder of two classes."""
    for name in (
        "photos/a.png",
        "photos/b.png",
        "photos/c.png",
        "shots/cat/x.png",
        "shots/dog/y.png",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"opened, this would be an error")
    names = ("cat", "dog", "fox")
    return LabelSettings(source="photos", classes=names, prompts=names, folder=str(tmp_path))


@pytest.fixture
def _nothing_loads(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("an encoder was loaded, or an image embedded")

    monkeypatch.setattr(inputs, "load_encoder", refuse)
    monkeypatch.setattr(embedder.Embedder, "embed", refuse)


@pytest.mark.usefixtures("_nothing_loads")
@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"method": "coop", "support": "shots"}, InvalidSetting, "coop"),
        ({"method": "paddle"}, InvalidSetting, "support for paddle, found none"),
        ({"method": "paddle", "support": "shots"}, InvalidSetting, "found none of fox"),
        ({"method": "tip-adapter", "support_from": "two.csv"}, InvalidSetting, "found none of cat"),
        ({"method": "paddel"}, UnknownName, "did you mean 'paddle'"),
        ({"truth": "other.csv"}, InvalidFile, "found none of their names"),
        ({"support_from": "other.csv"}, InvalidFile, "Expected corrections of images of this run"),
        ({"support": "photos"}, InvalidFile, "beside them"),
    ],
)
def test_what_cannot_run_is_refused_before_any_image_is_opened(
    settings, tmp_path, options, error, problem
):
    (tmp_path / "other.csv").write_text("file_name,label\nzebra.jpeg,cat\n")
    (tmp_path / "two.csv").write_text("file_name,label\na.png,dog\nb.png,fox\nc.png,unknown\n")
    with pytest.raises(error, match=problem):
        run_labeling(replace(settings, **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_file_is_listed_and_read_once(settings, tmp_path, monkeypatch):
    (tmp_path / "truth.csv").write_text("file_name,label\na.png,cat\nb.png,fox\n")
    (tmp_path / "reviewed.csv").write_text("file_name,label\nc.png,unknown\n")
    calls = []

    def counted(function):
        def call(path):
            calls.append(str(path))
            return function(path)

        return call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inputs, "find_images", counted(inputs.find_images))
    read_once = counted(inputs.read_labeled)
    monkeypatch.setattr(inputs, "read_labeled", read_once)
    monkeypatch.setattr(known_labels, "read_labeled", read_once)
    data = inputs.read_inputs(
        replace(settings, truth="truth.csv", support_from="reviewed.csv", support="shots")
    )
    assert len(calls) == len(set(calls)) == 4
    assert data.truth == {"a.png": 0, "b.png": 2}
    assert data.corrections == {"c.png": UNKNOWN}
    assert data.support_labels == {"cat/x.png": 0, "dog/y.png": 1}
