"""Settings as TOML, and what is refused in them."""

import inspect
from dataclasses import fields

import pytest

from transduce.cli.label import label_command
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.errors import InvalidRun, InvalidSetting
from transduce.labeling.notebook import label
from transduce.labeling.settings import LabelSettings, read_settings, to_toml

AWKWARD = ('with "quotes"', "back\\slash", "emoji 🦊", "<b>tag</b>", "new\nline", "tab\t\x7f")


def test_settings_come_back_from_toml(tmp_path):
    settings = LabelSettings(
        source='a "quoted" folder/🦊', classes=AWKWARD, prompts=AWKWARD, batch=12,
        classes_present="all", min_score=0.25, allow_unknown=True, folder="/tmp/ä",
    )  # fmt: skip
    path = tmp_path / "run.toml"
    path.write_text(to_toml(settings), encoding="utf-8")
    assert read_settings(path) == settings


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "version 1"),
        ("format = ", "Expected TOML"),
        ('format = "transduce-run"\nversion = 1\nsauce = "x"', "'sauce'"),
        ('format = "transduce-run"\nversion = 1\n', "missing required field `source`"),
    ],
)
def test_other_files_are_no_settings(tmp_path, text, problem):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InvalidRun, match=problem):
        read_settings(path)


@pytest.mark.parametrize(
    "wrong", [{"min_score": 1.5}, {"batch": 0}, {"classes_present": 0}, {"min_score": -0.1}]
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InvalidSetting):
        LabelSettings(source="x", classes=("a", "b"), prompts=("a", "b"), **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": "nonsense"},
        {"seed": True},
        {"batch": "ten"},
        {"batch": 2.5},
        {"classes_present": "most"},
        {"allow_unknown": 1},
        {"min_score": "high"},
        {"temperature": 0.0},
        {"templates": "a photo of a {}."},
    ],
    ids=str,
)
def test_values_of_another_type_are_refused_by_name(tmp_path, wrong):
    name = next(iter(wrong))
    with pytest.raises(InvalidSetting, match=name):
        LabelSettings(source="x", classes=("a", "b"), prompts=("a", "b"), **wrong)
    path = tmp_path / "run.toml"
    text = to_toml(LabelSettings(source="x", classes=("a", "b"), prompts=("a", "b")))
    lines = [line for line in text.splitlines() if not line.startswith(f"{name} =")]
    value = str(wrong[name]).lower() if not isinstance(wrong[name], str) else f'"{wrong[name]}"'
    path.write_text("\n".join([*lines, f"{name} = {value}"]))
    with pytest.raises(InvalidRun, match=name):
        read_settings(path)


def test_a_misspelled_setting_is_guessed(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('format = "transduce-run"\nversion = 1\nbach = 3\n')
    with pytest.raises(InvalidRun, match="did you mean 'batch'"):
        read_settings(path)


def test_lists_are_taken_for_tuples():
    settings = LabelSettings(source="x", classes=["a", "b"], prompts=["a", "b"])
    assert settings.classes == ("a", "b")


def test_options_that_are_none_or_no_setting_are_left_out(tmp_path):
    names = ClassNames.of(["a", "b"])
    options = {"source": tmp_path, "seed": None, "batch": 7, "quiet": True}
    settings = LabelSettings.of(names, options)
    assert settings == LabelSettings(
        source=str(tmp_path), classes=("a", "b"), prompts=("a", "b"), batch=7
    )


def test_every_setting_can_be_given_in_python_and_on_the_command_line():
    settings = {field.name for field in fields(LabelSettings)}
    in_python = set(inspect.signature(label).parameters)
    assert settings - in_python == {"prompts", "folder", "features", "temperature"}
    typed = set(inspect.signature(label_command).parameters)
    assert settings - typed == {"prompts", "folder", "templates", "temperature"}


def test_the_old_name_of_the_drawn_encoder_is_still_read(tmp_path):
    names = ("red circle", "blue star")
    old = to_toml(LabelSettings(source="x", classes=names, prompts=names, encoder="default"))
    (tmp_path / "run.toml").write_text(old)
    assert read_settings(tmp_path / "run.toml").encoder == "shapes"
    assert Identity("default", "sha256:0", "", 3) == Identity("shapes", "sha256:0", "", 3)
