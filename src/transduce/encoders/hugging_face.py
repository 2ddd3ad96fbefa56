"""`hf:ORG/NAME` or `hf:FOLDER`: a CLIP or a SigLIP of the transformers library.

The preprocessing is read from the model's own preprocessor_config.json, so that neither
transformers' image processors nor torchvision are needed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from transduce.encoders import portable_tokenizers
from transduce.encoders.diagnostics import (
    missing_extra_advice,
    out_of_memory_advice,
    torchvision_advice,
)
from transduce.encoders.encoder import LoadSettings
from transduce.encoders.hub import fetch_model_file, hub_mode, missing_weights
from transduce.encoders.preprocessor_config import preprocessing_from_config
from transduce.encoders.torch_towers import Tensor, TextInput, TorchEncoder, ready
from transduce.encoders.torchvision_stand_in import import_torchvision
from transduce.errors import InvalidEncoder, MissingExtra

MODELS = {"clip": "CLIPModel", "siglip": "SiglipModel"}  # model_type in config.json -> class
# What the weights do not tell and the embedding depends on.
BEHAVIOR = ("hidden_act", "num_attention_heads", "layer_norm_eps", "eos_token_id", "patch_size")


def load_hugging_face(name: str, settings: LoadSettings) -> TorchEncoder:
    """Return the encoder that `hf:` + `name` names."""
    with missing_extra_advice("A Hugging Face encoder", "hf"):
        import torch  # noqa: F401 (transformers alone would import, and fail later)
        import transformers
    import_torchvision()  # transformers imports it where it is installed, and needs none of it
    local = Path(name).expanduser().is_dir()
    source = str(Path(name).expanduser().resolve()) if local else name
    offline, device = settings.offline, settings.device
    with hub_mode(offline, local=local), out_of_memory_advice(1, "model", device):
        config = _read(source, "config.json", offline)
        family = _family(source, config)
        preprocessing = preprocessing_from_config(_image_settings(source, offline), family, source)
        model, tokenizer = _create(transformers, source, family, offline)
        model = ready(model, device)
    return TorchEncoder(
        name=f"hf:{source}",
        model=model,
        image_tower=lambda pixels: _pooled(model.get_image_features(pixel_values=pixels)),
        text_tower=lambda tokens: _pooled(model.get_text_features(input_ids=tokens)),
        text_input=_text_input(tokenizer, model.config.text_config.max_position_embeddings),
        preprocessing=preprocessing,
        settings=_settings(model.config),
        device=device,
        batch_size=settings.batch_size,
    )


def _image_settings(source: str, offline: bool) -> dict[str, Any]:
    if fetch_model_file(source, "preprocessor_config.json", offline):
        return _read(source, "preprocessor_config.json", offline)
    both = _read(source, "processor_config.json", offline)  # what transformers 5 writes
    return dict(both.get("image_processor", both))


def _read(source: str, file: str, offline: bool) -> dict[str, Any]:
    path = fetch_model_file(source, file, offline)
    if path is None:
        raise InvalidEncoder(
            f"Expected a CLIP or SigLIP model of transformers in {source}, found no {file}; "
            "an open_clip model is open_clip:hf-hub:... or open_clip:local-dir:..."
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidEncoder(f"Expected JSON in {path}, found: {error}") from error


def _family(source: str, config: Mapping[str, Any]) -> str:
    family = str(config.get("model_type"))
    if family not in MODELS:
        raise InvalidEncoder(
            f"Expected a model of type {' or '.join(MODELS)} in {source}, found {family!r}; "
            "choose another model."
        )
    return family


def _create(transformers: Any, source: str, family: str, offline: bool) -> tuple[Any, Any]:  # noqa: ANN401
    with torchvision_advice():
        model_class = getattr(transformers, MODELS[family])
    try:
        model, report = model_class.from_pretrained(
            source, local_files_only=offline, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=offline)
    except ImportError as error:  # sentencepiece, for the tokenizer of SigLIP
        raise MissingExtra(f"The tokenizer of {source}", "hf") from error
    except (OSError, ValueError) as error:
        if Path(source).is_dir():
            raise InvalidEncoder(
                f"Expected the weights and the tokenizer of a model in {source}, found: {error}"
            ) from error
        raise missing_weights(f"hf:{source}", source, offline, error) from error
    wrong = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if wrong:  # transformers fills these with random numbers and a log line
        raise InvalidEncoder(
            f"Expected all weights of {source}, found {len(wrong)} missing or of another shape, "
            f"such as {wrong[0]}; download it again."
        )
    return model, tokenizer


def _settings(config: Any) -> dict[str, Any]:  # noqa: ANN401
    towers = {"text": config.text_config, "vision": config.vision_config}
    return {
        f"{tower}.{key}": getattr(settings, key)
        for tower, settings in towers.items()
        for key in BEHAVIOR
        if hasattr(settings, key)
    }


def _text_input(tokenizer: Any, context_length: int) -> TextInput:  # noqa: ANN401
    def tokenize(sentences: Sequence[str]) -> Int64[np.ndarray, "text token"]:
        # SigLIP saw every text padded to the full length, and CLIP does not mind: its text tower
        # is causal and looks at the first end of text. Neither saw an attention mask.
        ids = tokenizer(
            list(sentences), padding="max_length", truncation=True, max_length=context_length
        )["input_ids"]
        return np.asarray(ids, np.int64)

    return TextInput(
        tokenize=tokenize,
        context_length=context_length,
        padding_id=int(tokenizer.pad_token_id),
        portable=lambda: portable_tokenizers.of_transformers(tokenizer),
    )


def _pooled(output: Any) -> Tensor:  # noqa: ANN401
    """Return the projected embedding, which transformers 5 wraps and 4 does not."""
    return output if not hasattr(output, "pooler_output") else output.pooler_output
