"""The encoder `shapes` as committed: its accuracy on new pictures, its limits, its files."""

import re

import numpy as np
import pytest

from transduce.benchmark.synthetic import LOOKS, SEEN, TEXTURES, UNSEEN, Thing, draw, name_of
from transduce.encoders.class_names import ClassNames
from transduce.encoders.onnx import SHAPES_FOLDER, load_shapes
from transduce.encoders.prompts import embed_classes
from transduce.encoders.tokenizers.words import UnknownWords
from transduce.methods import METHODS
from transduce.task import Task

SEED = 31  # of pictures that neither the training nor the card used
PICTURES = 400
PAIRS = {"seen": SEEN, "unseen": UNSEEN}


@pytest.fixture(scope="module")
def encoder():
    return load_shapes(threads=1)


def embed_new_pictures(encoder, pairs, look, count=PICTURES):
    generator = np.random.default_rng(SEED)
    truth = generator.integers(len(pairs), size=count)
    pixels = []
    for place in truth:
        color, shape = pairs[place]
        thing = Thing(shape, color, TEXTURES[generator.integers(len(TEXTURES))])
        pixels.append(encoder.preprocessing(draw(thing, LOOKS[look], generator)))
    return encoder.embed_images(np.stack(pixels)), truth


def embed_names(encoder, pairs, cache):
    return embed_classes(encoder, ClassNames.of(map(name_of, pairs)), cache=cache)


def on_the_card():
    rows = re.findall(r"\| (\w+) \| (\w+) \| ([\d.]+) \|", (SHAPES_FOLDER / "CARD.md").read_text())
    return {(pairs, look): float(accuracy) / 100 for pairs, look, accuracy in rows}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("pairs", PAIRS)
def test_accuracy_is_what_the_card_says(encoder, tmp_path, pairs, look):
    images, truth = embed_new_pictures(encoder, PAIRS[pairs], look)
    names = embed_names(encoder, PAIRS[pairs], tmp_path)
    found = ((images @ names.T).argmax(1) == truth).mean()
    expected = on_the_card()[pairs, look]
    deviation = np.sqrt(expected * (1 - expected) / PICTURES)
    assert abs(found - expected) < 4 * deviation + 0.01


def test_there_is_something_to_gain_on_what_it_never_saw():
    assert 0.5 <= on_the_card()["unseen", "shifted"] <= 0.85


def test_probabilities_at_the_librarys_temperature_are_neither_flat_nor_certain(encoder, tmp_path):
    images, _ = embed_new_pictures(encoder, UNSEEN, "shifted", 200)
    task = Task.from_embeddings(images, embed_names(encoder, UNSEEN, tmp_path))
    assert 5 / len(UNSEEN) < task.zero_shot.max(1).mean() < 0.8


def test_a_joint_answer_comes_out_of_drawn_pictures(encoder, tmp_path):
    """The whole road; the classes present are few, as the method expects."""
    images, truth = embed_new_pictures(encoder, UNSEEN, "training", PICTURES)
    kept = truth < 6
    task = Task.from_embeddings(images[kept], embed_names(encoder, UNSEEN, tmp_path))
    prediction = METHODS["hard-em-dirichlet"]().predict(task)
    assert (prediction.labels == truth[kept]).mean() > 0.9


def test_the_towers_are_deterministic(encoder):
    images, _ = embed_new_pictures(encoder, UNSEEN, "shifted", 20)
    again, _ = embed_new_pictures(load_shapes(threads=1), UNSEEN, "shifted", 20)
    np.testing.assert_array_equal(images, again)
    sentences = ["a photo of a red circle.", "a striped thing"]
    np.testing.assert_array_equal(
        encoder.embed_texts(sentences), load_shapes(threads=1).embed_texts(sentences)
    )


def test_a_batch_gives_what_single_pictures_give(encoder):
    images, _ = embed_new_pictures(encoder, SEEN, "training", 8)
    pixels = np.random.default_rng(0).normal(size=(8, 3, 48, 48)).astype(np.float32)
    alone = np.concatenate([encoder.embed_images(pixel[None]) for pixel in pixels])
    np.testing.assert_allclose(encoder.embed_images(pixels), alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)


def test_other_words_are_refused_with_what_it_knows(encoder, tmp_path):
    with pytest.raises(UnknownWords, match="only a small drawn world") as caught:
        embed_classes(encoder, ClassNames.of(["cat", "red circle"]), cache=tmp_path)
    assert caught.value.words == ("cat",)
    assert "crescent" in str(caught.value)


def test_its_identity_is_its_name_and_its_weights(encoder):
    assert encoder.identity.encoder == "shapes"
    assert encoder.identity.weights.startswith("sha256:")
    assert encoder.identity.dimension == 65


def test_it_stays_small():
    files = {path.name for path in SHAPES_FOLDER.iterdir() if path.is_file()}
    assert files == {"image.onnx", "text.onnx", "tokenizer.json", "config.json", "CARD.md"}
    assert sum((SHAPES_FOLDER / name).stat().st_size for name in files) <= 3_000_000
