"""Settings as TOML, doubt, truth, presence: the parts of a run, one by one."""

import numpy as np
import pytest
from scipy import stats

from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.errors import InvalidFile, InvalidRun, InvalidSetting, InvalidStore, UnknownName
from transduce.features.layout import Meta, Settings
from transduce.features.store import FeatureStore
from transduce.features.writing import Row, finish, write_shard
from transduce.labeling import review_reasons
from transduce.labeling.automatic import estimate_presence
from transduce.labeling.evaluation import mcnemar, wilson
from transduce.labeling.files import read_labeled
from transduce.labeling.run_directory import RunDirectory, hidden_name, new_run_folder
from transduce.labeling.settings import LabelSettings, read_settings, to_toml
from transduce.labeling.shots import folder_labels
from transduce.labeling.table import UNKNOWN

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
    ("text", "told"),
    [
        ("", "version 1"),
        ("format = ", "Expected TOML"),
        ('format = "transduce-run"\nversion = 1\nsauce = "x"', "'sauce'"),
        ('format = "transduce-run"\nversion = 1\n', "Expected all settings"),
    ],
)
def test_other_files_are_no_settings(tmp_path, text, told):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InvalidRun, match=told):
        read_settings(path)


@pytest.mark.parametrize(
    "wrong", [{"min_score": 1.5}, {"batch": 0}, {"classes_present": 0}, {"min_score": -0.1}]
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InvalidSetting):
        LabelSettings(source="x", classes=("a", "b"), prompts=("a", "b"), **wrong)


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(InvalidRun, match="no such folder"):
        RunDirectory.load(tmp_path / "none")
    with pytest.raises(InvalidRun, match=r"no summary\.json"):
        RunDirectory.load(tmp_path)


def test_hidden_runs_keep_their_number(tmp_path):
    first = new_run_folder(tmp_path)
    assert hidden_name(first).is_dir()
    assert new_run_folder(tmp_path).name == "transduce-002"
    (tmp_path / "transduce-0x7").mkdir()
    assert new_run_folder(tmp_path).name == "transduce-003"


def test_duplicates_that_disagree():
    names, same = ("a", "b", "c", "d"), ("", "a", "", "c")
    conflict = review_reasons.conflicting(names, same, np.array([0, 1, 2, 2]))
    assert conflict.tolist() == [True, True, False, False]


def test_far_images_are_far_from_the_others():
    distance = np.full(40, 0.7, np.float32) + np.linspace(0, 0.02, 40, dtype=np.float32)
    distance[3] = 0.9
    assert np.flatnonzero(review_reasons.far_away(distance)).tolist() == [3]
    assert not review_reasons.far_away(distance[:10]).any()  # too few to tell
    assert not review_reasons.far_away(np.ones(30, np.float32)).any()


def test_tiny_classes():
    label = np.array([0] * 20 + [1, UNKNOWN, 2, 2, 2])
    assert np.flatnonzero(review_reasons.in_tiny_classes(label, 3)).tolist() == [20]


def test_reasons_in_words():
    no = np.zeros(3, bool)
    reasons = review_reasons.reasons_of(
        margin=np.array([0.1, 0.9, 0.1], np.float32),
        changed=np.array([True, True, False]),
        zero_shot_score=np.array([0.9, 0.3, 0.9], np.float32),
        far=no, conflict=no, tiny=no, settled=np.array([False, False, True]),
    )  # fmt: skip
    assert reasons == ("close call; changed from a sure zero-shot label", "", "")


def test_entropy_is_a_share():
    rows = np.array([[1, 0, 0, 0], [0.25] * 4], np.float32)
    np.testing.assert_allclose(review_reasons.entropy_share(rows), [0, 1], atol=1e-6)


@pytest.mark.parametrize(("right", "of"), [(0, 10), (10, 10), (71, 100)])
def test_wilson_is_scipys(right, of):
    wanted = stats.binomtest(right, of).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(right, of), wanted, atol=1e-6)


def test_mcnemar():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(8, 2) == pytest.approx(stats.binomtest(8, 10).pvalue)


def test_presence_counts_the_classes_that_are_there():
    random = np.random.default_rng(0)
    truth = random.choice([2, 5, 6], 200)
    logits = 3.0 * np.eye(20)[truth] + random.normal(size=(200, 20)) * 0.7
    zero_shot = np.exp(logits * 0.3)
    zero_shot /= zero_shot.sum(1, keepdims=True)
    presence = estimate_presence(zero_shot, 30.0)
    assert presence.classes.tolist() == [2, 5, 6]
    assert 0.0 < presence.expected_error < 1.0


def test_folders_name_the_class_of_a_shot():
    classes = ClassNames.of(["AnnualCrop", "sea lake"])
    labels = folder_labels(["annual_crop/a.jpg", "AnnualCrop/b/c.jpg", "sea lake/d.jpg"], classes)
    assert labels.tolist() == [0, 0, 1]
    with pytest.raises(UnknownName, match="did you mean 'sea lake'"):
        folder_labels(["sea_lakes/x.jpg"], classes)
    with pytest.raises(InvalidFile, match="beside them"):
        folder_labels(["x.jpg"], classes)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.0])
def test_rows_without_a_direction_are_named(tmp_path, wrong):
    rows = np.ones((6, 4), np.float16)
    rows[4] = wrong
    shard = write_shard(tmp_path, 0, rows, [Row(f"{n}.jpg", "") for n in range(6)])
    finish(tmp_path, Meta(Identity("e", "w", "p", 4), Settings()), [shard], [])
    with pytest.raises(InvalidStore, match=r"row 4 \(4\.jpg\)"):
        list(FeatureStore.open(tmp_path).unit_blocks(np.arange(6)))


def test_a_csv_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('file_name,label\n"a, b.jpg",cat\nc.jpg, dog \n', encoding="utf-8-sig")
    assert read_labeled(path) == {"a, b.jpg": "cat", "c.jpg": "dog"}
    path.write_text("name,kind\nx,y\n")
    with pytest.raises(InvalidFile, match="found name, kind"):
        read_labeled(path)
    with pytest.raises(InvalidFile, match="check the path"):
        read_labeled(tmp_path / "none.csv")
