"""open_clip's and transformers' tokenizers as one file for the light `tokenizers` package.

Everything that happens to a sentence is inside: cleaning, splitting, merges, special tokens.
One thing cannot be: ftfy, with which open_clip repairs text. Its frequent repairs are there (curly
quotes, ligatures, control characters, the usual HTML entities); left out are text in a wrong
encoding ("schÃ¶n"), rarer entities, full-width letters, and the final sigma of Greek capitals.
"""

from typing import Any

from transduce.errors import InvalidEncoder

# Each (pattern, replacement) in turn; what ftfy and html.unescape do to text without mojibake.
ENTITIES = (("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"))
REPAIRS = (
    (r"[\x00-\x08\x0b\x0e-\x1f\x7f\u206a-\u206f\ufeff\ufff9-\ufffc]", ""),
    (r"[\u02bc\u2018-\u201b]", "'"),
    (r"[\u201c-\u201f]", '"'),
    ("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬃ", "ffi"), ("ﬄ", "ffl"), ("ﬅ", "ſt"), ("ﬆ", "st"),
)  # fmt: skip
PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^`{|}~]"""
START, END = "<start_of_text>", "<end_of_text>"
WORDS = rf"{START}|{END}|'s|'t|'re|'ve|'m|'ll|'d|[\p{{L}}]+|[\p{{N}}]|[^\s\p{{L}}\p{{N}}]+"


def of_open_clip(tokenizer: Any) -> Any:  # noqa: ANN401
    """Return a `tokenizers.Tokenizer` that gives the ids of open_clip's tokenizer."""
    clean = getattr(tokenizer.clean_fn, "__name__", "")
    inner = getattr(tokenizer, "tokenizer", None)
    portable = _byte_pairs(tokenizer) if inner is None else of_transformers(inner)
    from tokenizers import normalizers

    before = [] if portable.normalizer is None else [portable.normalizer]
    portable.normalizer = normalizers.Sequence([*_cleaning(clean), *before])
    return portable


def of_transformers(tokenizer: Any) -> Any:  # noqa: ANN401
    """Return a `tokenizers.Tokenizer` that gives the ids of a tokenizer of transformers."""
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return _unigram(tokenizer)
    portable = Tokenizer.from_str(backend.to_str())  # a copy: the original stays as it is
    portable.no_truncation()
    portable.no_padding()
    return portable


def _cleaning(clean: str) -> list[Any]:
    from tokenizers import Regex, normalizers

    changes = (*ENTITIES, *ENTITIES, *REPAIRS)  # open_clip unescapes twice, for "&amp;amp;"
    repairs = [normalizers.Replace(Regex(pattern), new) for pattern, new in changes]
    steps = [*repairs, normalizers.NFC()]
    if clean == "_clean_canonicalize":
        steps += [normalizers.Replace("_", " "), normalizers.Replace(Regex(PUNCTUATION), "")]
    if clean in ("_clean_canonicalize", "_clean_lower"):
        steps.append(normalizers.Lowercase())
    return [*steps, normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]


def _byte_pairs(tokenizer: Any) -> Any:  # noqa: ANN401
    """Return open_clip's SimpleTokenizer: CLIP's byte pairs, each word closed by </w>."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, processors

    merges = sorted(tokenizer.bpe_ranks, key=tokenizer.bpe_ranks.__getitem__)
    portable = Tokenizer(
        models.BPE(vocab=dict(tokenizer.encoder), merges=merges, end_of_word_suffix="</w>")
    )
    portable.add_special_tokens([AddedToken(token, normalized=True) for token in (START, END)])
    portable.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    ids = [(token, tokenizer.encoder[token]) for token in (START, END)]
    portable.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=ids
    )
    return portable


def _unigram(tokenizer: Any) -> Any:  # noqa: ANN401
    """Return SigLIP's sentencepiece model: no punctuation, a blank before, </s> after."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    pieces = getattr(tokenizer, "sp_model", None)
    if pieces is None or type(tokenizer).__name__ != "SiglipTokenizer":
        raise InvalidEncoder(
            f"Expected a tokenizer that `tokenizers` can hold, found {type(tokenizer).__name__}; "
            "use the model without exporting it."
        )
    scores = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]
    portable = Tokenizer(models.Unigram(scores, unk_id=pieces.unk_id(), byte_fallback=False))
    lower = [normalizers.Lowercase()] if tokenizer.do_lower_case else []
    rules = _character_rules(pieces)
    portable.normalizer = normalizers.Sequence(
        [
            *lower,
            normalizers.Replace(Regex(PUNCTUATION.replace("`", "_`")), ""),
            *([normalizers.Precompiled(rules)] if rules else []),
            normalizers.Replace(Regex(r"[\s▁]+"), " "),
            normalizers.Strip(),
        ]
    )
    portable.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    end = tokenizer.eos_token
    portable.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.eos_token_id)]
    )
    return portable


def _character_rules(pieces: Any) -> bytes:  # noqa: ANN401
    """Return the Unicode normalization inside a sentencepiece model."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(pieces.serialized_model_proto())
    return bytes(model.normalizer_spec.precompiled_charsmap)
