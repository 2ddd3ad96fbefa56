"""Turn errors of the environment (missing extra, torchvision, memory) into advice."""

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager

from transduce.errors import EncoderUnavailable, MissingExtra, OutOfMemory

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
TORCHVISION = ("torchvision::", "torchvision.extension", "torchvision/_C")


@contextmanager
def missing_extra_advice(what: str, extra: str) -> Iterator[None]:
    """Turn a missing package in the block into an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(what, extra) from error


@contextmanager
def torchvision_advice() -> Iterator[None]:
    """Turn a torchvision made for another torch into the command that installs a pair.

    Its first sign is "operator torchvision::nms does not exist", sometimes deep in the causes.
    """
    try:
        yield
    except (RuntimeError, ImportError) as error:
        sign = _torchvision_sign(error)
        if sign is None:
            raise
        torch, torchvision = _version("torch"), _version("torchvision")
        raise EncoderUnavailable(
            f"Expected a torchvision made for torch {torch}, found torchvision {torchvision} "
            f"({sign}); install the two together:\n"
            f"  pip install --force-reinstall {torch_and_torchvision()}\n"
            "hf: and onnx: encoders need no torchvision: for them, this is enough:\n"
            "  pip uninstall torchvision"
        ) from error


@contextmanager
def out_of_memory_advice(count: int, what: str, device: str) -> Iterator[None]:
    """Turn running out of memory in the block into an error that names a smaller batch."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        smaller = count // 2
        remedy = (
            f"use a smaller batch: --batch-size {smaller}" if smaller else "use a smaller model"
        )
        raise OutOfMemory(
            f"Expected memory for {count} {what} at once on {device}, found too little; {remedy}."
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or onnxruntime means that memory ran out."""
    return isinstance(error, MemoryError) or any(
        sign in str(error).lower() for sign in OUT_OF_MEMORY
    )


def _torchvision_sign(error: BaseException | None) -> str | None:
    while error is not None:
        if any(sign in str(error) for sign in TORCHVISION):
            return str(error).splitlines()[0]
        error = error.__cause__ or error.__context__
    return None


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def torch_and_torchvision() -> str:
    """Return what pip is to install: the torch that is here and its torchvision, of its index."""
    torch = _version("torch")
    version, _, build = torch.partition("+")  # such as 2.13.0+cpu
    major, minor = [*version.split("."), ""][:2]
    index = f" --index-url https://download.pytorch.org/whl/{build}" if build else ""
    if major != "2":
        return f"torch torchvision{index}"
    # torchvision 0.15 came with torch 2.0, and the two have counted together since.
    return f'"torch=={major}.{minor}.*" "torchvision==0.{int(minor) + 15}.*"{index}'
