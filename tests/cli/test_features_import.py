"""`transduce features import`, and `transduce label --features` on files of other programs."""

import csv
from pathlib import Path

import numpy as np
import pytest

from transduce.encoders import load_encoder
from transduce.features.store import FeatureStore
from transduce.labeling.pipeline import solve_again
from transduce.labeling.run_directory import RunDirectory

CLASSES = ["cat", "dog", "fox"]


def features(count=60, dimension=16, seed=0):
    """Images around three class embeddings, and their classes."""
    random = np.random.default_rng(seed)
    texts = random.normal(size=(3, dimension))
    labels = np.arange(count) % 3
    return texts[labels] + 0.3 * random.normal(size=(count, dimension)), labels, texts


@pytest.fixture
def npz(tmp_path):
    images, labels, texts = features()
    names = [f"{number:03d}.jpg" for number in range(len(images))]
    np.savez(tmp_path / "mine.npz", embeddings=images, file_name=names, labels=labels,
             classes=CLASSES, class_embeddings=texts)  # fmt: skip
    return labels


def labels_of(run):
    with Path(run, "labels.csv").open(newline="", encoding="utf-8") as file:
        return {row["file_name"]: row["label"] for row in csv.DictReader(file)}


def test_import_then_label_with_truth(command, npz):
    code, out, err = command("features", "import", "mine.npz", "--out", "store")
    assert code == 0, err
    wrote, following = out.splitlines()
    assert wrote == "Wrote store/  60 images x 16 numbers  labels.csv  classes.json  texts.npz"
    assert following.startswith("Next: transduce label --features store")
    code, out, err = command(*following.removeprefix("Next: transduce ").split())
    assert code == 0, err
    assert "of 60 labels are right" in out


def test_options_name_arrays_and_files(command, tmp_path):
    images, labels, texts = features()
    np.savez(tmp_path / "odd.npz", x=images, y=labels)
    np.save(tmp_path / "words.npy", texts)
    (tmp_path / "names.txt").write_text("".join(f"{n}.png\n" for n in range(60)))
    code, _, err = command(
        "features", "import", "odd.npz", "--out", "store", "--array", "x", "--names", "names.txt",
        "--labels", "y", "--classes", "cat,dog,fox", "--class-embeddings", "words.npy",
    )  # fmt: skip
    assert code == 0, err
    assert FeatureStore.open("store").keys()[59] == "59.png"
    assert Path("store/labels.csv").read_text().splitlines()[2] == "1.png,dog"
    code, _, err = command("features", "import", "odd.npz", "--out", "other", "--array", "z")
    assert code == 2
    assert "Known: x" in err


def test_label_takes_the_file_itself(command, npz):
    code, _, err = command("label", "--features", "mine.npz", "--classes", "cat,dog,fox")
    assert code == 0, err
    assert "Found the features of 60 images in mine.npz" in err
    first = labels_of("out/transduce-001")
    right = [first[f"{n:03d}.jpg"] == CLASSES[label] for n, label in enumerate(npz)]
    assert np.mean(right) > 0.9
    run = RunDirectory.load("out/transduce-001")
    assert run.store().folder == run.folder / "features"  # the run does not need the file again
    assert solve_again(run, {"000.jpg": "fox"}).store().keys() == run.store().keys()
    code, _, err = command("label", "--run", "out/transduce-001/run.toml")
    assert code == 0, err
    assert labels_of("out/transduce-003") == first


def test_the_named_encoder_embeds_the_classes(command, tmp_path):
    encoder = load_encoder("shapes")
    names = ["red circle", "blue square"]
    texts = encoder.embed_texts([f"a photo of a {name}." for name in names])
    np.save(tmp_path / "mine.npy", np.repeat(texts, 5, axis=0))
    words = ("label", "--features", "mine.npy", "--classes", ",".join(names))
    code, _, err = command(*words, "--encoder", "shapes", "--method", "zero-shot")
    assert code == 0, err
    assert list(labels_of("out/transduce-001").values()) == [names[0]] * 5 + [names[1]] * 5
    code, _, err = command(*words)
    assert code == 2
    assert "name it with --encoder" in err


def test_a_declared_encoder_of_another_name_or_width_is_refused(command, tmp_path):
    np.save(tmp_path / "mine.npy", np.eye(8))
    code, _, err = command("features", "import", "mine.npy", "--out", "s", "--encoder", "hf:a/b")
    assert code == 0, err
    for encoder, word in (("shapes", "encoder hf:a/b"), (None, "hf:a/b")):
        more = () if encoder is None else ("--encoder", encoder)
        code, _, err = command("label", "--features", "s", "--classes", "red circle,blue star",
                               "--offline", *more)  # fmt: skip
        assert code == 2
        assert word in err
    code, _, err = command("label", "--features", "mine.npy", "--classes", "red circle,blue star",
                           "--encoder", "shapes")  # fmt: skip
    assert code == 2
    assert "dimension 8" in err
