"""`onnx:` folders: what is read, how it is identified, and what is refused."""

import json
import shutil
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from transduce.encoders.encoder import Preprocessing
from transduce.encoders.onnx import SHAPES_FOLDER, OnnxConfig, OnnxEncoder, load_shapes
from transduce.encoders.tokenizers import TextSettings, subwords
from transduce.errors import InvalidEncoder, MissingExtra

LENGTH = 5


@pytest.fixture
def folder(tmp_path):
    """A copy of the encoder `shapes`, to break."""
    return shutil.copytree(SHAPES_FOLDER, tmp_path / "encoder")


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def tower(path, inputs, nodes, output):
    """A graph of a few nodes, saved."""
    graph = helper.make_graph(
        nodes,
        "tower",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


@pytest.fixture
def masked(tmp_path):
    """An encoder whose text embedding is token ids times the mask, and whose picture's is mean."""
    import tokenizers
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"?": 1, "a": 2, "cat": 3, "dog": 4}, unk_token="?")
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    integers = ("n", LENGTH)
    tower(
        tmp_path / "text.onnx",
        [("tokens", TensorProto.INT64, integers), ("attention_mask", TensorProto.INT64, integers)],
        [
            helper.make_node("Mul", ["tokens", "attention_mask"], ["product"]),
            helper.make_node("Cast", ["product"], ["out"], to=TensorProto.FLOAT),
        ],
        "out",
    )
    tower(
        tmp_path / "image.onnx",
        [("x", TensorProto.FLOAT, ("n", 3, LENGTH, LENGTH))],
        [helper.make_node("ReduceMean", ["x"], ["out"], axes=[1, 2], keepdims=0)],
        "out",
    )
    text = TextSettings("tokenizers", context_length=LENGTH, padding_id=9)
    OnnxConfig("masked", LENGTH, Preprocessing(size=LENGTH), text).write(tmp_path)
    return tmp_path


def test_subwords_are_padded_cut_and_masked(masked):
    found = OnnxEncoder(masked).embed_texts(["a dog", "a cat a cat a cat a cat"])
    expected = np.array([[2, 4, 0, 0, 0], [2, 3, 2, 3, 2]], float)
    np.testing.assert_allclose(
        found, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6
    )


def test_the_padding_id_reaches_the_tower(masked):
    tokenizer = subwords.SubwordTokenizer(
        masked / "tokenizer.json", TextSettings("tokenizers", LENGTH, 9)
    )
    tokens, mask = tokenizer.encode(["a bird"])
    assert tokens.tolist() == [[2, 1, 9, 9, 9]]
    assert mask.tolist() == [[1, 1, 0, 0, 0]]
    assert tokens.dtype == mask.dtype == np.int64


def test_images_come_out_with_length_one(masked):
    pixels = np.random.default_rng(0).normal(size=(7, 3, LENGTH, LENGTH)).astype(np.float32)
    found = OnnxEncoder(masked).embed_images(pixels)
    expected = pixels.mean((1, 2))
    np.testing.assert_allclose(
        found, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-4, atol=1e-6
    )
    assert found.dtype == np.float32


def test_nothing_in_nothing_out(masked):
    encoder = OnnxEncoder(masked)
    assert encoder.embed_texts([]).shape == (0, LENGTH)
    assert encoder.embed_images(np.zeros((0, 3, LENGTH, LENGTH), np.float32)).shape == (0, LENGTH)


def test_many_sentences_at_once_are_the_same_as_few(monkeypatch):
    sentences = [f"a {word} thing" for word in ("red", "blue", "green", "white", "black")]
    whole = load_shapes().embed_texts(sentences)
    monkeypatch.setattr("transduce.encoders.onnx.TEXTS_AT_ONCE", 2)
    np.testing.assert_allclose(load_shapes().embed_texts(sentences), whole, atol=1e-6)


def test_identity_follows_the_files_and_not_the_place(folder):
    original = OnnxEncoder(SHAPES_FOLDER).identity
    assert OnnxEncoder(folder).identity == original
    assert original.encoder == "onnx:drawn-world"
    assert original.preprocessing == OnnxEncoder(folder).preprocessing.describe()
    (folder / "CARD.md").write_text("other words about the same encoder")
    assert OnnxEncoder(folder).identity == original
    with (folder / "image.onnx").open("ab") as file:
        file.write(b"\0")
    assert OnnxEncoder(folder).identity.weights != original.weights


@pytest.mark.parametrize("extra", ["image.onnx.data", "tokenizer.json"])
def test_identity_counts_external_weights_and_the_tokenizer(folder, extra):
    before = OnnxEncoder(folder).identity
    with (folder / extra).open("ab") as file:
        file.write(b" ")
    assert OnnxEncoder(folder).identity != before


def test_identity_counts_the_text_settings(folder):
    before = OnnxEncoder(folder).identity
    edit(folder, text={"tokenizer": "words", "context_length": 12, "padding_id": 0})
    assert OnnxEncoder(folder).identity != before


@pytest.mark.parametrize("file", ["config.json", "image.onnx", "text.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(InvalidEncoder, match=rf"no such file: .*{file}; make one with"):
        OnnxEncoder(folder)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidEncoder, match=r"no such folder: .*nowhere"):
        OnnxEncoder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "Expected format 1 .* found 2"),
        ({"preprocessing": {"size": 48}}, "Expected preprocessing.mean"),
        ({"preprocessing": {"size": 48, "mean": [0, 0], "std": [1, 1, 1]}}, "length 3, found 2"),
        ({"text": {"tokenizer": "letters", "context_length": 16}}, "Invalid enum value 'letters'"),
        ({"text": {"length": 16}}, "missing required field `tokenizer`"),
    ],
)
def test_a_config_that_does_not_fit(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(InvalidEncoder, match=message):
        OnnxEncoder(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_config_that_is_no_config(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(InvalidEncoder, match=r"Expected .*config\.json"):
        OnnxEncoder(folder)


def test_a_tower_that_is_cut_short(folder):
    whole = (folder / "image.onnx").read_bytes()
    (folder / "image.onnx").write_bytes(whole[: len(whole) // 2])
    encoder = OnnxEncoder(folder)
    with pytest.raises(InvalidEncoder, match=r"onnxruntime can load in .*image\.onnx"):
        encoder.embed_images(np.zeros((1, 3, 48, 48), np.float32))


def test_a_text_tower_with_other_inputs(folder):
    shutil.copy(folder / "image.onnx", folder / "text.onnx")
    with pytest.raises(InvalidEncoder, match=r"found \['pixels'\]"):
        OnnxEncoder(folder).embed_texts(["a red circle"])


def test_a_dimension_that_the_towers_do_not_have(folder):
    edit(folder, dimension=7)
    with pytest.raises(InvalidEncoder, match=r"config\.json and the towers disagree"):
        OnnxEncoder(folder).embed_texts(["a red circle"])


def test_pixels_of_another_size():
    with pytest.raises(InvalidEncoder, match=r"\(n, 3, 48, 48\) for shapes, found \(1, 3, 32"):
        load_shapes().embed_images(np.zeros((1, 3, 32, 32), np.float32))


def test_a_broken_tokenizer(masked):
    (masked / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidEncoder, match=r"tokenizer\.json of Hugging Face"):
        OnnxEncoder(masked).embed_texts(["a cat"])


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_its_libraries_the_command_is_told(masked, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match="pip install --upgrade transduce"):
        OnnxEncoder(masked).embed_texts(["a cat"])
