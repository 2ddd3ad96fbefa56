"""The word tokenizer: ids, padding, and words it was never taught."""

import pytest

from transduce.encoders.tokenizers import TextSettings
from transduce.encoders.tokenizers.words import UnknownWords, WordTokenizer
from transduce.errors import InvalidEncoder, TransduceError

TOKENIZER = WordTokenizer("It knows two pets.", {"pets": ["cat", "dog"], "rest": ["a", "of"]}, 4)


def test_ids_padding_and_mask():
    tokens, mask = TOKENIZER.encode(["A dog.", "  cat,cat\tcat of a dog"])
    assert tokens.tolist() == [[3, 2, 0, 0], [1, 1, 1, 4]]
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_unknown_words_are_named_once_with_what_is_known():
    with pytest.raises(UnknownWords) as caught:
        TOKENIZER.encode(["a fox", "a dog", "a Fox of wolf"])
    assert caught.value.words == ("fox", "wolf")
    message = str(caught.value)
    assert "found 'fox', 'wolf'; for photographs" in message
    assert "It knows two pets." in message
    assert "pets: cat, dog" in message
    assert isinstance(caught.value, TransduceError)


def test_a_long_list_of_unknown_words_is_cut():
    with pytest.raises(UnknownWords, match="'w9' and 5 more"):
        TOKENIZER.encode([f"w{number}" for number in range(15)])


@pytest.mark.parametrize("sentence", ["", " ... "])
def test_a_sentence_without_words_is_refused(sentence):
    with pytest.raises(UnknownWords):
        TOKENIZER.encode([sentence])


def test_written_and_read_again(tmp_path):
    TOKENIZER.write(tmp_path / "tokenizer.json")
    assert WordTokenizer.read(tmp_path / "tokenizer.json", TextSettings("words", 4)) == TOKENIZER


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"about": "x", "words": ["cat"]}'])
def test_a_broken_file_is_refused(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(InvalidEncoder, match=r"in .*tokenizer\.json, found"):
        WordTokenizer.read(tmp_path / "tokenizer.json", TextSettings("words", 4))
