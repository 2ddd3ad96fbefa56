"""The training script, for a few steps: it learns, exports, and writes a card."""

from collections import Counter

import numpy as np
import pytest
import torch

from training.calibrate import calibrate, set_cone
from training.captions import ABOUT, WORDS, Caption, caption
from training.drawn import PREPROCESSING, as_pixels, draw_set
from training.export import export
from training.measure import embed_names, embed_set
from training.settings import Settings
from training.train import contrast, train, truth_of
from transduce.benchmark.synthetic import LOOKS, SEEN, SHAPES, TEXTURES, Thing, draw
from transduce.encoders.onnx import IMAGE_TOWER, SHAPES_FOLDER, TEXT_TOWER, OnnxEncoder
from transduce.encoders.tokenizers.words import WordTokenizer

# Warnings of the exporter's own imports, about torch's internals.
pytestmark = pytest.mark.filterwarnings("ignore:.*treespec.*:FutureWarning")


@pytest.fixture(scope="module")
def drawn():
    return draw_set(SEEN, 64, "training", seed=3, workers=1)


def test_a_image_depends_on_seed_and_number_alone(drawn):
    fewer = draw_set(SEEN, 10, "training", seed=3, workers=1)
    np.testing.assert_array_equal(drawn.images[:10], fewer.images)
    assert drawn.things[:10] == fewer.things


def test_bytes_become_what_the_preprocessing_gives():
    generator = np.random.default_rng(0)
    image = draw(Thing("star", "red", "solid"), LOOKS["training"], generator)
    expected = PREPROCESSING(image)
    raw = expected.transpose(1, 2, 0) * np.array(PREPROCESSING.std) + np.array(PREPROCESSING.mean)
    found = as_pixels(np.rint(255 * raw).astype(np.uint8)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_truth_of_a_batch_is_the_truth_of_each(drawn):
    generator = np.random.default_rng(0)
    things = drawn.things[:40]
    captions = [caption(thing, generator) for thing in things]
    expected = [[entry.is_true_of(thing) for entry in captions] for thing in things]
    np.testing.assert_array_equal(truth_of(things, captions), expected)


def test_the_loss_is_least_when_all_true_captions_share_the_probability():
    truth = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    right = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    wrong = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    least = contrast(right, right, truth, 30.0)
    # Two images with two true captions each, entropy log 2; one with one, entropy 0.
    assert least.item() == pytest.approx(2 / 3 * np.log(2), abs=1e-4)
    assert contrast(wrong, right, truth, 30.0) > least + 1


def test_a_few_steps_and_an_export(drawn, tmp_path, capsys):
    settings = Settings(images=64, epochs=20, batch=32)
    images, texts, tokenizer = train(settings, drawn)
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5
    export(tmp_path, images, texts, tokenizer, settings.dimension)
    encoder = OnnxEncoder(tmp_path, threads=1)
    pixels = as_pixels(drawn.images[:5])
    with torch.no_grad():
        expected = images(torch.from_numpy(pixels)).numpy()
        tokens = torch.from_numpy(tokenizer.encode(["a red circle."])[0])
        expected_text = texts(tokens).numpy()
    np.testing.assert_allclose(encoder.embed_images(pixels), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.embed_texts(["a red circle."]), expected_text, atol=1e-5)


def test_captions_are_true_and_readable():
    generator = np.random.default_rng(0)
    tokenizer = WordTokenizer(ABOUT, WORDS, 16)
    told = Counter()
    for number in range(500):
        thing = Thing(SHAPES[number % 12], "red", TEXTURES[number % 4])
        made = caption(thing, generator)
        assert made.is_true_of(thing)
        tokens, _ = tokenizer.encode([made.sentence])  # refuses a word it does not know
        assert tokens[0, -1] == 0, "cut short"
        told[tuple(word is not None for word in made.facts)] += 1
    assert len(told) == 4
    assert told.most_common(1)[0][0] == (True, True, False)


def test_a_caption_of_another_thing_is_not_true():
    red_circle = Caption("a red circle.", ("circle", "red", None))
    assert red_circle.is_true_of(Thing("circle", "red", "dotted"))
    assert not red_circle.is_true_of(Thing("circle", "blue", "dotted"))
    assert not red_circle.is_true_of(Thing("ring", "red", "dotted"))


def test_a_calibrated_cone_is_cautious(tmp_path):
    """Of an encoder that is far too sure; its zero-shot answers stay."""
    for file in SHAPES_FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    width = 1.0 - float(OnnxEncoder(tmp_path).embed_texts(["a red circle."])[0, -1] ** 2)
    for tower in (IMAGE_TOWER, TEXT_TOWER):
        set_cone(tmp_path / tower, width, 0.5)
    features = embed_set(OnnxEncoder(tmp_path), draw_set(SEEN, 120, "shifted", 8, workers=1), SEEN)
    names = embed_names(OnnxEncoder(tmp_path), SEEN)
    before, after = calibrate(tmp_path, 120)
    assert before == pytest.approx(0.5, abs=1e-3)
    assert 0.05 < after < 0.3
    narrow = embed_names(OnnxEncoder(tmp_path), SEEN)
    np.testing.assert_allclose(np.linalg.norm(narrow, axis=1), 1.0, atol=1e-5)
    images = OnnxEncoder(tmp_path).embed_images(
        as_pixels(draw_set(SEEN, 120, "shifted", 8, workers=1).images)
    )
    assert ((images @ narrow.T).argmax(1) == (features.images @ names.T).argmax(1)).mean() > 0.98
