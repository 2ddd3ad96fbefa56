"""What `transduce doctor` tries, each in a process of its own: a crash there is an answer too.

    python -m transduce.cli.self_checks NAME

prints a line of JSON, {"ok": bool, "detail": str}. Nothing is downloaded.
"""

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.encoders.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Library:
    """A library: what it is for, its names, and the extra that installs it ("" for the core)."""

    purpose: str
    distribution: str
    module: str
    extra: str = ""


LIBRARIES = (
    Library("clip, dinov2, onnx:, shapes", "onnxruntime", "onnxruntime"),
    Library("the words of clip and onnx:", "tokenizers", "tokenizers"),
    Library("transduce review", "fastapi", "fastapi"),
    Library("transduce review", "uvicorn", "uvicorn"),
    Library("labels.parquet, features", "pyarrow", "pyarrow.parquet"),
    Library("classes in .yaml", "PyYAML", "yaml"),
    Library("em-dirichlet and the like", "numba", "numba", "dirichlet"),
    Library("encoders in torch", "torch", "torch", "torch"),
    Library("open_clip:", "open_clip_torch", "open_clip", "open-clip"),
    Library("hf:", "transformers", "transformers", "hf"),
    Library("iPhone photos (.heic)", "pillow-heif", "pillow_heif", "heif"),
    Library("Labels.to_pandas", "pandas", "pandas", "notebook"),
    Library("the scikit-learn estimator", "scikit-learn", "sklearn", "sklearn"),
    Library("s3:// and other URLs", "fsspec", "fsspec", "remote"),
    Library("many machines", "ray", "ray", "ray"),
)


def run_check() -> None:
    """Run the check that the command line names."""
    kind, _, name = sys.argv[1].partition("=")
    checks: dict[str, Callable[[str], str]] = {
        "import": _import,
        "encoder": _encoder,
        "open_clip": _open_clip,
        "hf": _hugging_face,
        "solve": _solve,
    }
    try:
        answer = {"ok": True, "detail": checks[kind](name)}
    except Exception as error:  # whatever it is, it is what the user must read
        lines = str(error).splitlines() or [type(error).__name__]
        answer = {"ok": False, "detail": f"{type(error).__name__}: {lines[0]}"}
    sys.stdout.flush()
    print(json.dumps(answer), flush=True)
    os._exit(0)  # threads of a library must not keep the answer back


def _import(module: str) -> str:
    """Import a library as the loaders do."""
    if module == "open_clip":
        from transduce.encoders.open_clip import import_open_clip

        import_open_clip()
    else:
        importlib.import_module(module)
    return "imported"


def _encoder(name: str) -> str:
    """Embed one image, and one word if the encoder knows words; nothing is downloaded."""
    from transduce.encoders import load_encoder

    return _try(load_encoder(name, offline=True), "a red circle")


def _open_clip(name: str) -> str:
    """Run a very small model of open_clip, with random weights, through our loader."""
    from transduce.encoders import load_encoder
    from transduce.encoders.open_clip import import_open_clip

    open_clip = import_open_clip()
    from safetensors.torch import save_file

    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
    vision = {"image_size": 32, "layers": 1, "width": 64, "head_width": 32, "patch_size": 8}
    config = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}
    with tempfile.TemporaryDirectory() as folder:
        save_file(open_clip.CLIP(**config).state_dict(), f"{folder}/open_clip_model.safetensors")
        settings = {"model_cfg": config, "preprocess_cfg": {}}
        Path(folder, "open_clip_config.json").write_text(json.dumps(settings), encoding="utf-8")
        return _try(load_encoder(f"open_clip:local-dir:{folder}", offline=True), "cat")


def _hugging_face(name: str) -> str:
    """Run a very small CLIP of transformers, with random weights, through our loader."""
    from transduce.encoders import load_encoder
    from transduce.encoders.torchvision_stand_in import import_torchvision

    import_torchvision()
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    words = ["a", "c", "t", "t</w>", "<|startoftext|>", "<|endoftext|>"]
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    tower["num_attention_heads"] = 2
    text = tower | {"vocab_size": 6, "max_position_embeddings": 20}
    text |= {"bos_token_id": 4, "eos_token_id": 5, "pad_token_id": 5}
    vision = tower | {"image_size": 32, "patch_size": 8}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    with tempfile.TemporaryDirectory() as folder:
        CLIPTokenizer({word: k for k, word in enumerate(words)}, []).save_pretrained(folder)
        CLIPModel(config).save_pretrained(folder)
        settings = {"size": {"shortest_edge": 32}, "crop_size": 32}
        Path(folder, "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
        return _try(load_encoder(f"hf:{folder}", offline=True), "cat")


def _solve(name: str) -> str:
    """Solve a tiny task by the default method."""
    import numpy as np

    from transduce.methods.anchored import Anchored
    from transduce.task import Task

    generator = np.random.default_rng(0)
    classes = np.eye(3, 8)
    images = classes[generator.integers(3, size=30)] + 0.1 * generator.normal(size=(30, 8))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    task = Task.from_embeddings(images, classes, space="embedding")
    labels = Anchored().predict(task).labels
    assert len(labels) == 30
    return "30 images labeled"


def _try(encoder: "Encoder", word: str) -> str:
    import numpy as np

    from transduce.errors import InvalidEncoder

    size = encoder.preprocessing.size
    image = np.zeros((1, 3, size, size), np.float32)
    rows, done = [encoder.embed_images(image)], "one image"
    try:
        rows.append(encoder.embed_texts([word]))
        done = "one image and one word"
    except InvalidEncoder as error:
        if "images only; take a CLIP" not in " ".join(str(error).split()):
            raise
    if not all(np.isfinite(row).all() and row.shape == rows[0].shape for row in rows):
        raise ArithmeticError(f"embeddings that are no numbers, or of shapes {rows}")
    return f"embedded {done}"


if __name__ == "__main__":
    run_check()
