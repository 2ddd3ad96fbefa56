"""What lies in an `onnx:` folder: its config.json, read and written, and the hash of its files."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from transduce.encoders.preprocessing import Preprocessing
from transduce.errors import InvalidEncoder
from transduce.machine.atomic import read_json

FORMAT = 1
CONFIG = "config.json"
IMAGE_TOWER = "image.onnx"
TEXT_TOWER = "text.onnx"
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How sentences become the rows of token ids that the text tower takes."""

    tokenizer: Literal["words", "tokenizers"]
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
        """Write config.json."""
        contents = {"format": FORMAT, **asdict(self)}
        (folder / CONFIG).write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "OnnxConfig":
        """Read config.json of a folder that has all its files."""
        for file in (CONFIG, IMAGE_TOWER, TEXT_TOWER, TOKENIZER):
            if not (folder / file).is_file():
                what = "no such file" if folder.is_dir() else "no such folder"
                raise InvalidEncoder(
                    f"Expected an ONNX encoder in {folder} ({CONFIG}, {IMAGE_TOWER}, {TEXT_TOWER}, "
                    f"{TOKENIZER}), found {what}: {folder / file if folder.is_dir() else folder}; "
                    "make one with: transduce export-onnx"
                )
        path = folder / CONFIG
        raw = read_json(path, _Raw, error=InvalidEncoder)
        if raw.format != FORMAT:
            raise InvalidEncoder(
                f"Expected format {FORMAT} in {path}, found {raw.format!r}; export the model "
                "again, or use the version of transduce that wrote it."
            )
        for name in ("mean", "std"):  # CLIP's would be silently wrong for another model
            if name not in raw.preprocessing:
                raise InvalidEncoder(
                    f"Expected preprocessing.{name} in {path}, found none; export the model again."
                )
        return read_json(path, cls, error=InvalidEncoder)


@dataclass(frozen=True, slots=True)
class _Raw:
    """What is checked before defaults are filled in."""

    format: Any = None
    preprocessing: dict[str, Any] = field(default_factory=dict)


def hash_of(folder: Path, config: OnnxConfig) -> str:
    """Return a SHA-256 over all that decides an embedding besides the preprocessing."""
    digest = hashlib.sha256(json.dumps(asdict(config.text), sort_keys=True).encode())
    towers = {path for tower in (IMAGE_TOWER, TEXT_TOWER) for path in folder.glob(f"{tower}*")}
    for path in [*sorted(towers), folder / TOKENIZER]:
        with path.open("rb") as file:
            digest.update(path.name.encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{digest.hexdigest()}"
