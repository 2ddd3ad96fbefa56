"""Feature stores of a simulated encoder: images around the directions of their classes."""

import json
from dataclasses import replace

import numpy as np

from transduce.encoders.precomputed import TEXTS, write_texts
from transduce.features.importing import import_arrays
from transduce.features.layout import META, embeddings_name, read_meta
from transduce.features.store import FeatureStore
from transduce.labeling.problem import Problem, Shots
from transduce.labeling.settings import LabelSettings
from transduce.machine.atomic import sha256_of

NAMES = tuple(f"kind {letter}" for letter in "abcdefghijkl")
TEMPLATE = "a photo of a {}."


def directions(n_classes, spread=0.08, dimension=24, seed=5):
    """Unit vectors in a cone, as those of a CLIP text tower are."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n_classes, dimension)) * spread
    rows[:, 0] += 2.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def write_simulated(
    folder, *, images=120, classes=NAMES, present=None, noise=0.09, spread=0.08, seed=0
):
    """A store with the embeddings of its sentences; returns the class of each image."""
    random = np.random.default_rng(seed)
    texts = directions(len(classes), spread)
    chosen = np.arange(len(classes)) if present is None else np.asarray(present)
    truth = random.choice(chosen, images)
    shift = random.normal(size=texts.shape) * 0.07  # images of a class differ from its sentence
    rows = texts[truth] + shift[truth] + noise * random.normal(size=(images, texts.shape[1]))
    keys = [f"image-{number:04d}.jpg" for number in range(images)]
    store = import_arrays(rows, keys, folder, encoder="simulated")
    sentences = [TEMPLATE.replace("{}", name) for name in classes]
    write_texts(store.folder / TEXTS, sentences, texts)
    return truth


def rewrite_meta(folder, identity=None):
    """Write meta.json with the hashes of the first shard as it is now, and another identity."""
    meta = read_meta(folder)
    shard = replace(
        meta.shards[0], embeddings_sha256=sha256_of(folder / embeddings_name(meta.shards[0].index))
    )
    meta = replace(meta, shards=(shard, *meta.shards[1:]), identity=identity or meta.identity)
    (folder / META).write_text(json.dumps(meta.to_json()))


def write_truth(path, truth, classes=NAMES):
    lines = [f"image-{number:04d}.jpg,{classes[k]}" for number, k in enumerate(truth)]
    path.write_text("\n".join(["file_name,label", *lines]) + "\n")
    return path


def simulated_problem(folder, *, fixed=None, **settings):
    """The problem of labeling 60 simulated images of 3 of 12 classes, and their truth."""
    truth = write_simulated(folder, images=60, present=[1, 4, 7])
    problem = Problem(
        store=FeatureStore.open(folder),
        class_embeddings=directions(len(NAMES)).astype(np.float32),
        settings=LabelSettings(
            source="", classes=NAMES, prompts=NAMES, features=str(folder), **settings
        ),
        shots=Shots.none(24),
        fixed=fixed or {},
        truth=truth,
    )
    return problem, truth
