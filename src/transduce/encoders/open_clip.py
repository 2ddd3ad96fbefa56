"""`open_clip:MODEL/TAG`: a model of the open_clip library, with the weights of a tag.

Also `open_clip:MODEL,TAG`, slashes inside the model's name (`open_clip:ViT-B/32`), a weights file
instead of the tag (`open_clip:ViT-B-32,/path/weights.pt`), and the library's own
`hf-hub:ORG/NAME` and `local-dir:FOLDER` (open_clip_config.json with the weights beside it).
Without a tag it is `openai`, where the model has it.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from transduce.encoders import portable_tokenizers
from transduce.encoders.diagnostics import (
    is_out_of_memory,
    missing_extra_advice,
    out_of_memory_advice,
    torchvision_advice,
)
from transduce.encoders.encoder import LoadSettings, Preprocessing
from transduce.encoders.hub import hub_mode, missing_weights
from transduce.encoders.torch_towers import TextInput, TorchEncoder, ready
from transduce.encoders.torchvision_stand_in import torchvision_or_stand_in
from transduce.errors import InvalidEncoder, UnknownName

HUB, FOLDER = "hf-hub:", "local-dir:"


@dataclass(frozen=True, slots=True)
class OpenClipModel:
    """A model as open_clip names it, and where its weights come from."""

    model: str
    tag: str | None  # or the whole path of a weights file; None for hf-hub: and local-dir:
    quick_gelu: bool  # the activation its weights were trained with, where the tag tells
    repository: str

    @property
    def name(self) -> str:
        """The identifier of the encoder."""
        separator = "," if self.on_disk else "/"
        return f"open_clip:{self.model}" + (f"{separator}{self.tag}" if self.tag else "")

    @property
    def on_disk(self) -> bool:
        """Whether the weights are in a local file."""
        return self.model.startswith(FOLDER) or Path(self.tag or "").is_absolute()


def load_open_clip(name: str, settings: LoadSettings) -> TorchEncoder:
    """Return the encoder that `open_clip:` + `name` names."""
    open_clip = import_open_clip()
    choice = choose(name, open_clip)
    local = choice.on_disk
    with hub_mode(settings.offline, local=local), out_of_memory_advice(1, "model", settings.device):
        model, tokenizer = _create(open_clip, choice, settings.offline)
        config = dict(open_clip.get_model_config(choice.model))
        model = ready(model, settings.device)
    config["quick_gelu"] = config.get("quick_gelu", False) or choice.quick_gelu
    _warn_of_wrong_activation(choice, config["quick_gelu"])
    return TorchEncoder(
        name=choice.name,
        model=model,
        image_tower=model.encode_image,
        text_tower=model.encode_text,
        text_input=_text_input(tokenizer),
        preprocessing=preprocessing_from_open_clip(model.visual.preprocess_cfg),
        settings=config,
        device=settings.device,
        batch_size=settings.batch_size,
    )


def import_open_clip() -> Any:  # noqa: ANN401 (a module)
    """Return the library; raises what to install where it does not import."""
    with torchvision_advice(), missing_extra_advice("An open_clip encoder", "open-clip"):
        import torch  # noqa: F401 (what is missing is reported by its own name)

        with torchvision_or_stand_in():
            import open_clip

        return open_clip


def choose(body: str, open_clip: Any) -> OpenClipModel:  # noqa: ANN401
    """Read MODEL/TAG in any of its spellings; refuse a model or a tag that does not exist."""
    if body.startswith(HUB):
        return OpenClipModel(body, None, False, repository=body.removeprefix(HUB))
    if body.startswith(FOLDER):
        folder = Path(body.removeprefix(FOLDER)).expanduser().resolve()
        if not (folder / "open_clip_config.json").is_file():
            raise InvalidEncoder(
                f"Expected an open_clip model in {folder} (open_clip_config.json and "
                f"open_clip_model.safetensors), found no open_clip_config.json."
            )
        return OpenClipModel(f"{FOLDER}{folder}", None, False, repository=str(folder))
    model, tag = _split(body, open_clip.list_models())
    tags = open_clip.list_pretrained_tags_by_model(model)
    spelled = {known.replace("-", "_").lower(): known for known in tags}
    known_tag = spelled.get(tag.replace("-", "_").lower())
    if known_tag is None and Path(tag).is_file():
        return OpenClipModel(model, str(Path(tag).resolve()), False, repository=tag)
    if known_tag is None:
        raise UnknownName(f"tag of {model} after open_clip:{model}/", tag, tags)
    details = open_clip.get_pretrained_cfg(model, known_tag)
    repository = "/".join(str(details.get("hf_hub", "")).split("/")[:2])
    return OpenClipModel(model, known_tag, bool(details.get("quick_gelu")), repository)


def preprocessing_from_open_clip(settings: dict[str, Any]) -> Preprocessing:
    """Return our value for what open_clip stores with a model."""
    size = settings["size"]
    sizes = set(size) if isinstance(size, tuple | list) else {size}
    resize = settings["resize_mode"] or "shortest"
    if len(sizes) != 1 or resize not in ("shortest", "squash"):
        raise InvalidEncoder(
            f"Expected a model of square images, scaled by the shortest side or squashed, found "
            f"size {size} and resize mode {resize!r}; choose another model."
        )
    return Preprocessing(
        size=int(sizes.pop()),
        mean=tuple(settings["mean"]),
        std=tuple(settings["std"]),
        interpolation="bilinear" if settings["interpolation"] == "bilinear" else "bicubic",
        resize="squash" if resize == "squash" else "shortest",
    )


def _split(body: str, models: Sequence[str]) -> tuple[str, str]:
    """Return (model, tag), split at a comma or the last slash after a known model."""
    if "," in body:
        model, tag = body.split(",", 1)
        model = model.strip().replace("/", "-")
    elif body.replace("/", "-") in models:
        model, tag = body.replace("/", "-"), "openai"
    else:
        model, _, tag = body.rpartition("/")
        model = model.replace("/", "-")
    if model not in models:
        wanted = model or body
        raise UnknownName("model of open_clip", wanted, models)
    return model, tag.strip()


def _create(open_clip: Any, choice: OpenClipModel, offline: bool) -> tuple[Any, Any]:  # noqa: ANN401
    try:
        # require_pretrained: without it open_clip goes on with random weights and a log line.
        model = open_clip.create_model(
            choice.model,
            pretrained=choice.tag,
            precision="fp32",
            force_quick_gelu=choice.quick_gelu,
            require_pretrained=True,
            pretrained_text=False,
        )
        return model, open_clip.get_tokenizer(choice.model)
    except (RuntimeError, OSError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        if "loading state_dict" in str(error):
            raise InvalidEncoder(
                f"Expected weights that fit {choice.model}, found in {choice.repository}: {error}"
            ) from error
        if choice.on_disk:
            raise InvalidEncoder(
                f"Expected the weights of an open_clip model in {choice.repository}, found: {error}"
            ) from error
        raise missing_weights(choice.name, choice.repository, offline, error) from error


def _text_input(tokenizer: Any) -> TextInput:  # noqa: ANN401
    def tokenize(sentences: Sequence[str]) -> Int64[np.ndarray, "text token"]:
        return tokenizer(list(sentences)).numpy()

    inner = getattr(tokenizer, "tokenizer", None)  # transformers' own, inside open_clip's
    return TextInput(
        tokenize=tokenize,
        context_length=int(tokenizer.context_length),
        padding_id=0 if inner is None else int(inner.pad_token_id),
        portable=lambda: portable_tokenizers.of_open_clip(tokenizer),
    )


def _warn_of_wrong_activation(choice: OpenClipModel, quick_gelu: bool) -> None:
    """Warn of OpenAI's weights without QuickGELU: they run, several points worse."""
    if "openai" in choice.name.lower() and not quick_gelu:
        model = choice.model
        fix = 'set "quick_gelu": true in its open_clip_config.json'
        if choice.tag:
            fix = f"use open_clip:{model}-quickgelu,{choice.tag}"
        warnings.warn(
            f"Expected QuickGELU for OpenAI's weights, found GELU in {choice.name}; {fix}.",
            stacklevel=3,
        )
