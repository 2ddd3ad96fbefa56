"""What lies in an `onnx:` folder: its config.json, read and written, and the hash of its files."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from transduce.encoders.preprocessing import Preprocessing
from transduce.errors import InvalidEncoder

FORMAT = 1
CONFIG = "config.json"
IMAGE_TOWER = "image.onnx"
TEXT_TOWER = "text.onnx"
TOKENIZER = "tokenizer.json"

TokenizerKind = Literal["words", "tokenizers"]


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How sentences become the rows of token ids that the text tower takes."""

    tokenizer: TokenizerKind
    context_length: int
    padding_id: int = 0


@dataclass(frozen=True, slots=True)
class OnnxConfig:
    """The contents of config.json; `name` says which model the towers were made from."""

    name: str
    dimension: int
    preprocessing: Preprocessing
    text: TextSettings

    def write(self, folder: Path) -> None:
        contents = {"format": FORMAT, **asdict(self)}
        (folder / CONFIG).write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "OnnxConfig":
        for file in (CONFIG, IMAGE_TOWER, TEXT_TOWER, TOKENIZER):
            if not (folder / file).is_file():
                found = "no such file" if folder.is_dir() else "no such folder"
                raise InvalidEncoder(
                    f"Expected an ONNX encoder in {folder} ({CONFIG}, {IMAGE_TOWER}, {TEXT_TOWER}, "
                    f"{TOKENIZER}), found {found}: {folder / file if folder.is_dir() else folder}; "
                    "make one with: transduce export-onnx"
                )
        path = folder / CONFIG
        try:
            contents = json.loads(path.read_text(encoding="utf-8"))
            version = contents["format"]
            if version != FORMAT:
                raise InvalidEncoder(
                    f"Expected format {FORMAT} in {path}, found {version!r}; export the model "
                    "again, or use the version of transduce that wrote it."
                )
            return cls._parse(contents)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidEncoder):
                raise
            raise InvalidEncoder(
                f"Expected the settings of an ONNX encoder in {path}, found "
                f"{type(error).__name__}: {error}; export the model again."
            ) from error

    @classmethod
    def _parse(cls, contents: dict[str, Any]) -> "OnnxConfig":
        pictures = dict(contents["preprocessing"])
        for field in ("mean", "std"):
            red, green, blue = pictures[field]
            pictures[field] = (float(red), float(green), float(blue))
        config = cls(
            name=str(contents["name"]),
            dimension=int(contents["dimension"]),
            preprocessing=Preprocessing(**pictures),
            text=TextSettings(**contents["text"]),
        )
        if config.text.tokenizer not in get_args(TokenizerKind):
            raise ValueError(
                f"tokenizer {config.text.tokenizer!r}, not one of {get_args(TokenizerKind)}"
            )
        return config


def hash_of(folder: Path, config: OnnxConfig) -> str:
    """A SHA-256 over all that decides an embedding besides the preprocessing."""
    digest = hashlib.sha256(json.dumps(asdict(config.text), sort_keys=True).encode())
    towers = {path for tower in (IMAGE_TOWER, TEXT_TOWER) for path in folder.glob(f"{tower}*")}
    for path in [*sorted(towers), folder / TOKENIZER]:
        with path.open("rb") as file:
            digest.update(path.name.encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{digest.hexdigest()}"
