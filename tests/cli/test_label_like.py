"""`transduce label NEW --like RUN`: new images join a run, as it is typed."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import transduce
from tests.cli.drawings import DRAWN, write_drawings
from transduce.benchmark.synthetic import LOOKS, TEXTURES, Thing, draw
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory
from transduce.methods.anchored.model import AnchoredModel

PAIRS = [("circle", "red"), ("square", "blue"), ("star", "green")]


def write_some(folder, kinds, seed):
    folder.mkdir(parents=True)
    generator = np.random.default_rng(seed)
    for number, kind in enumerate(kinds):
        thing = Thing(*PAIRS[kind], TEXTURES[0])
        draw(thing, LOOKS["training"], generator).save(folder / f"{number:03d}.png")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Circles and squares first, then the same, then stars among them."""
    base = tmp_path_factory.mktemp("arriving")
    return (
        write_some(base / "first", [0, 1] * 15, 0),
        write_some(base / "second", [1, 0, 0, 1], 1),
        write_some(base / "third", [0, 2, 2, 2, 1, 2], 2),
    )


def labels_of(run):
    with (Path(run) / "labels.csv").open(newline="", encoding="utf-8") as file:
        return [row["label"] for row in csv.DictReader(file)]


def past_of(run):
    models = RunDirectory.load(run).model()
    return AnchoredModel.from_arrays(models.batches[0]).past


@pytest.fixture
def first(command, folders):
    code, _, err = command("label", folders[0], *DRAWN, "--workers", "1")
    assert code == 0, err
    return Path("out/transduce-001").absolute()


def test_images_join_a_run_and_more_join_them(command, folders, first):
    code, out, err = command("label", folders[1], "--like", first, "--workers", "1")
    assert code == 0, err
    assert "Joined    the 30 images before, of out/transduce-001" in out
    assert "Warning" not in out
    assert labels_of("out/transduce-002") == [
        "blue square", "red circle", "red circle", "blue square",
    ]  # fmt: skip
    assert past_of("out/transduce-002").images == 34

    code, out, err = command("label", folders[2], "--like", "out/transduce-002", "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert labels_of("out/transduce-003").count("green star") == 4
    assert any("green star (4)" in warning for warning in summary["warnings"])
    assert (summary["before"], past_of("out/transduce-003").images) == (34, 40)
    # What is written repeats it.
    code, _, err = command("label", "--run", "out/transduce-003/run.toml", "--workers", "1")
    assert code == 0, err
    assert labels_of("out/transduce-004") == labels_of("out/transduce-003")


def test_one_image_alone_joins(command, folders, first, tmp_path):
    one = write_drawings(tmp_path / "one", 1, seed=5)
    code, _, err = command("label", one, "--like", first, "--workers", "1")
    assert code == 0, err
    assert labels_of("out/transduce-002") == ["red circle"]
    assert RunDirectory.load("out/transduce-002").summary.method == "anchored"


def test_corrections_of_the_run_count(command, folders, first):
    run = RunDirectory.load(first)
    journal = Journal.open(first)
    wrong = run.labels.file_name[0]
    journal.append("review", wrong, "green star")
    code, _, err = command("label", folders[1], "--like", first, "--workers", "1")
    assert code == 0, err
    after = past_of("out/transduce-002")
    assert after.mass[2] == 1.0  # counted, whatever comes
    assert len(after.memory) == 29 + 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--classes", "red circle,blue square,yellow moon"), "found yellow moon; leave --classes"),
        (("--classes", "blue square,red circle,green star"), "another order"),
        (("--encoder", "clip"), "found --encoder clip; leave --encoder out"),
        (("--method", "em-dirichlet"), "Expected --method auto or anchored with --like"),
        (("--batch", "2"), "found --batch 2"),
        (("--template", "a {}"), "leave --template out"),
    ],
)
def test_what_contradicts_the_run_is_refused(command, folders, first, options, message):
    code, _, err = command("label", folders[1], "--like", first, *options)
    assert code == 2
    assert message in " ".join(err.split())
    assert not Path("out/transduce-002").exists()


def test_only_a_run_that_learned_can_be_joined(command, folders, tmp_path):
    code, _, err = command("label", folders[1], "--like", "nowhere")
    assert code == 2
    assert "Expected a run directory at nowhere" in err
    code, _, err = command("label", folders[0], *DRAWN, "--method", "zero-shot", "--workers", "1")
    assert code == 0, err
    code, _, err = command("label", folders[1], "--like", "out/transduce-001")
    assert code == 2
    assert "found zero-shot" in err
    code, _, err = command("label", "--run", "out/transduce-001/run.toml", "--like", "x")
    assert code == 2
    assert "Expected --run alone" in err


def test_the_same_in_python(folders, first):
    labels = transduce.label(folders[2], like=first)
    assert labels.names.count("green star") == 4
    assert "green star (4)" in str(labels)
    with pytest.raises(transduce.InvalidSetting, match="found yellow moon"):
        transduce.label(folders[2], "red circle,blue square,yellow moon", like=first)
