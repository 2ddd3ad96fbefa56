import json

import numpy as np
import pytest

from transduce.encoders import Identity, load_encoder
from transduce.encoders.precomputed import write_texts
from transduce.errors import InvalidEncoder, MissingWeights
from transduce.features.layout import Meta, Settings

IDENTITY = Identity("open_clip:ViT-B-32/openai", "sha256:1", "{}", 4)
SENTENCES = ["a photo of a cat.", "a photo of a dog.", "ein Foto, schön"]
ROWS = np.diag([1.0, 2.0, 3.0, 4.0])[:3]


@pytest.fixture
def store(tmp_path):
    meta = Meta(identity=IDENTITY, settings=Settings(32, "test"))
    (tmp_path / "meta.json").write_text(json.dumps(meta.to_json()))
    write_texts(tmp_path / "texts.npz", SENTENCES, ROWS)
    return tmp_path


def test_sentences_are_looked_up_in_any_order(store):
    encoder = load_encoder(f"precomputed:{store}")
    found = encoder.embed_texts([SENTENCES[2], SENTENCES[0], SENTENCES[2]])
    assert found.tolist() == np.eye(4)[[2, 0, 2]].tolist()  # unit length, whatever was stored
    assert found.dtype == np.float32
    assert encoder.identity == IDENTITY
    assert encoder.embed_texts([]).shape == (0, 4)


def test_texts_from_another_file(store, tmp_path):
    np.save(tmp_path / "other.npy", ROWS[::-1])
    (tmp_path / "other.txt").write_text("\n".join(reversed(SENTENCES)) + "\n", encoding="utf-8")
    encoder = load_encoder(f"precomputed:{store},{tmp_path / 'other.npy'}")
    assert encoder.embed_texts(SENTENCES).tolist() == np.eye(4)[:3].tolist()


def test_an_unknown_sentence_is_refused_with_the_nearest(store):
    with pytest.raises(
        InvalidEncoder, match=r"'a photo of a cat'; did you mean 'a photo of a cat\.'"
    ):
        load_encoder(f"precomputed:{store}").embed_texts(["a photo of a cat", SENTENCES[0]])


def test_pictures_are_refused(store):
    encoder = load_encoder(f"precomputed:{store}")
    with pytest.raises(InvalidEncoder, match="embed them with that encoder"):
        encoder.embed_images(np.zeros((1, 3, 8, 8), np.float32))
    with pytest.raises(InvalidEncoder, match="found images to embed"):
        encoder.preprocessing  # noqa: B018


def test_broken_stores_and_files_are_refused(store, tmp_path):
    with pytest.raises(InvalidEncoder, match="transduce embed"):
        load_encoder(f"precomputed:{tmp_path / 'nothing'}")
    with pytest.raises(MissingWeights, match="no such file; name one"):
        load_encoder(f"precomputed:{store},{tmp_path / 'none.npz'}")

    def texts(**arrays):
        np.savez(tmp_path / "bad.npz", **arrays)
        return load_encoder(f"precomputed:{store},{tmp_path / 'bad.npz'}")

    with pytest.raises(InvalidEncoder, match="sentences"):
        texts(embeddings=ROWS).embed_texts(SENTENCES)
    with pytest.raises(InvalidEncoder, match=r"\(3, 4\).*found \(3, 3\); were they made by that"):
        texts(sentences=SENTENCES, embeddings=np.eye(3)).embed_texts(SENTENCES)
    with pytest.raises(InvalidEncoder, match=r"\(3, 4\).*found \(2, 4\)"):
        texts(sentences=SENTENCES, embeddings=ROWS[:2]).embed_texts(SENTENCES)
    with pytest.raises(InvalidEncoder, match=r"only zeros in 'a photo of a dog\.'"):
        texts(sentences=SENTENCES, embeddings=ROWS * [[1], [np.nan], [1]]).embed_texts(SENTENCES)


def test_writing_needs_a_row_for_each_sentence(tmp_path):
    with pytest.raises(InvalidEncoder, match=r"each of 3 sentences, found shape \(2, 4\)"):
        write_texts(tmp_path / "texts.npz", SENTENCES, ROWS[:2])


def test_a_pickle_in_the_file_is_never_run(store, tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("run",)

    np.savez(tmp_path / "trap.npz", sentences=np.array([Trap()], object), embeddings=ROWS[:1])
    encoder = load_encoder(f"precomputed:{store},{tmp_path / 'trap.npz'}")
    with pytest.raises(InvalidEncoder, match="allow_pickle=False"):
        encoder.embed_texts(SENTENCES)
