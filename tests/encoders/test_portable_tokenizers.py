import numpy as np
import pytest

from transduce.encoders import portable_tokenizers
from transduce.encoders.encoder import LoadSettings
from transduce.encoders.hugging_face import load_hugging_face
from transduce.encoders.tokenizers import TextSettings, load_tokenizer

ODD_SENTENCES = [
    "a photo of a cat.",
    "A PHOTO OF A CAT!!!",
    "  leading, trailing and   inner\t\tblanks \n and lines ",
    "don't you'll I'm we've they're he'd it's 'S 'T",
    "3.14159 x 2 = 6.28 (approx.) #1 50% $9.99",
    "snake_case CamelCase kebab-case",
    "café naïve Zürich Ångström ÅÉÎØÜ",
    "cafe\u0301 e\u0301te\u0301",  # decomposed accents
    "日本語 한국어 русский ελληνικά العربية עברית हिन्दी",
    "emoji 🐈‍⬛ 👩🏽‍🚀 🏳️‍🌈 ✈️",
    "“curly” ‘quotes’ — dashes – and … dots",
    "fish &amp; chips &lt;b&gt; &quot;x&quot; &#39;y&#39; &amp;amp;",
    "ofﬁce ﬂower aﬄuent",
    "zero\u200bwidth non\u00a0breaking \u3000wide",
    "tab\x00control\x07characters\x7f",
    "<start_of_text> inside <end_of_text>",
    "antidisestablishmentarianism " * 30,
    "a",
    "!",
    "",
    "   ",
]


def ids_of(portable, path, context_length, padding_id):
    portable.save(str(path))
    settings = TextSettings("tokenizers", context_length, padding_id)
    return load_tokenizer(path.parent, settings).encode


@pytest.fixture(scope="module")
def byte_pairs(open_clip, tmp_path_factory):
    theirs = open_clip.get_tokenizer("ViT-B-32")
    path = tmp_path_factory.mktemp("byte-pairs") / "tokenizer.json"
    return theirs, ids_of(portable_tokenizers.of_open_clip(theirs), path, 77, 0)


@pytest.mark.parametrize("sentence", ODD_SENTENCES)
def test_open_clips_byte_pairs_give_the_same_ids(byte_pairs, sentence):
    theirs, encode = byte_pairs
    ids, mask = encode([sentence])
    assert ids.tolist() == theirs([sentence]).tolist()
    assert mask.sum() == np.count_nonzero(ids)


def test_every_class_name_of_imagenet_gives_the_same_ids(open_clip, byte_pairs):
    theirs, encode = byte_pairs
    sentences = [f"a photo of a {name}." for name in open_clip.IMAGENET_CLASSNAMES]
    assert np.array_equal(encode(sentences)[0], theirs(sentences).numpy())


@pytest.mark.parametrize("sentence", ["schÃ¶n", "&eacute;", "ＡＢＣ", "ΟΔΟΣ"])
def test_what_the_portable_tokenizer_cannot_repair(byte_pairs, sentence):
    """The limits in the module's docstring; if one of them falls, the docstring is out of date."""
    theirs, encode = byte_pairs
    assert encode([sentence])[0].tolist() != theirs([sentence]).tolist()


@pytest.mark.parametrize("folder", ["clip_folder", "siglip_folder"])
def test_transformers_tokenizers_give_the_same_ids(folder, request, tmp_path):
    text = load_hugging_face(str(request.getfixturevalue(folder)), LoadSettings()).text_input
    encode = ids_of(
        text.portable(), tmp_path / "tokenizer.json", text.context_length, text.padding_id
    )
    expected = text.tokenize(ODD_SENTENCES)
    found = encode(ODD_SENTENCES)[0]
    wrong = [
        (sentence, row.tolist(), wanted.tolist())
        for sentence, row, wanted in zip(ODD_SENTENCES, found, expected, strict=True)
        if not np.array_equal(row, wanted)
    ]
    assert not wrong


@pytest.mark.parametrize("clean", ["canonicalize", "whitespace"])
def test_open_clips_wrapper_of_transformers_tokenizers(open_clip, siglip_folder, clean, tmp_path):
    """How open_clip tokenizes for its SigLIP models: its own cleaning, then transformers'."""
    from open_clip.tokenizer import HFTokenizer

    theirs = HFTokenizer(str(siglip_folder), context_length=16, clean=clean)
    encode = ids_of(
        portable_tokenizers.of_open_clip(theirs), tmp_path / "tokenizer.json", 16,
        theirs.tokenizer.pad_token_id,
    )  # fmt: skip
    assert encode(ODD_SENTENCES)[0].tolist() == theirs(ODD_SENTENCES).tolist()
