"""Model files through huggingface_hub's cache, and what to do when they cannot be had.

HF_HOME and HF_HUB_OFFLINE hold as everywhere; `offline=True` is HF_HUB_OFFLINE for one call.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import InvalidEncoder, MissingExtra, MissingWeights


@dataclass(frozen=True, slots=True)
class HubModel:
    """Files of a hub repository at one revision, so that a name means the same model for ever.

    Parameters
    ----------
    name : str
        As the user writes the encoder.
    repository : str
        ORG/NAME on the hub.
    revision : str
        The commit of the repository.
    files : mapping of str to str
        Path in the repository to the SHA-256 of the file; "" where it is not known.
    license : str
        Of the weights.
    """

    name: str
    repository: str
    revision: str
    files: Mapping[str, str]
    license: str = ""


def fetch_hub_model(model: HubModel, *, offline: bool) -> dict[str, Path]:
    """Return the path of each file of `model`, from the cache or the hub, its checksum compared.

    Raises
    ------
    MissingWeights
        If a file is neither in the cache nor to be had.
    InvalidEncoder
        If a file is not the one that is pinned.
    """
    paths = {}
    with hub_mode(offline):
        for file, digest in model.files.items():
            path = fetch_model_file(
                model.repository, file, offline, revision=model.revision, encoder=model.name
            )
            if path is None:
                raise InvalidEncoder(
                    f"Expected {file} in {model.repository} at {model.revision}, found no such "
                    "file; check HF_ENDPOINT, which may name an incomplete mirror."
                )
            _check_digest(path, digest, model)
            paths[file] = path
    return paths


def cached_hub_model(model: HubModel) -> bool:
    """Whether every file of `model` is in the cache; nothing is downloaded, read or compared."""
    try:
        from huggingface_hub import constants  # alone it is quick to import
    except ImportError:
        return False
    folder = Path(constants.HF_HUB_CACHE, f"models--{model.repository.replace('/', '--')}")
    return all((folder / "snapshots" / model.revision / file).is_file() for file in model.files)


def _check_digest(path: Path, expected: str, model: HubModel) -> None:
    if not expected:
        return
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise InvalidEncoder(
            f"Expected the file of {model.name} with SHA-256 {expected}, found {actual} at {path}; "
            "it is damaged or was changed: delete it, and it is downloaded again."
        )


@contextmanager
def hub_mode(offline: bool) -> Iterator[None]:
    """Keep every library in the block from downloading, if `offline`.

    open_clip reports to the root logger, which would start to print everything: it is kept from
    it, as what matters is in our errors.
    """
    try:
        from huggingface_hub import constants
    except ImportError:
        raise MissingExtra("The Hugging Face hub", "hf") from None
    before, silence, root = constants.HF_HUB_OFFLINE, logging.NullHandler(), logging.getLogger()
    constants.HF_HUB_OFFLINE = before or offline
    root.addHandler(silence)
    try:
        yield
    finally:
        root.removeHandler(silence)
        constants.HF_HUB_OFFLINE = before


def fetch_model_file(
    source: str, file: str, offline: bool, *, revision: str | None = None, encoder: str = ""
) -> Path | None:
    """Return a file of a local folder or a hub repository; None if it has no such file.

    `encoder` is what errors call the model, by default `hf:` and the source.
    """
    if Path(source).is_dir():
        path = Path(source) / file
        return path if path.is_file() else None
    encoder = encoder or f"hf:{source}"
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        return Path(hf_hub_download(source, file, revision=revision, local_files_only=offline))
    except HFValidationError as error:
        raise InvalidEncoder(
            f"Expected a folder, or ORG/NAME as on the hub, found {source!r}."
        ) from error
    except LocalEntryNotFoundError as error:  # an EntryNotFoundError, but the hub may have it
        raise missing_weights(encoder, source, offline, error, revision) from error
    except EntryNotFoundError:
        return None
    except OSError as error:  # no such repository, or not for us
        raise missing_weights(encoder, source, offline, error, revision) from error


def missing_weights(
    encoder: str,
    repository: str,
    offline: bool,
    cause: BaseException,
    revision: str | None = None,
) -> MissingWeights:
    """Return the error to raise: which files, why not, and the commands that get them."""
    from huggingface_hub import constants

    get = f"hf download {repository}" + (f" --revision {revision}" if revision else "")
    where = f"the cache {constants.HF_HUB_CACHE}"
    if constants.HF_HUB_OFFLINE or offline:
        switch = "leave --offline out" if offline else "unset HF_HUB_OFFLINE"
        return MissingWeights(
            f"Expected the weights of {encoder} in {where}, found none, and nothing may be "
            f"downloaded; {switch}, or run this where there is a network, and copy that cache "
            f"here or point HF_HOME to it:\n  {get}"
        )
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    return MissingWeights(
        f"Expected the weights of {encoder} in {where} or on the hub, found: {reason}\n"
        f"Check the name and the network (a gated model also needs: hf auth login), then:\n  {get}"
    )
