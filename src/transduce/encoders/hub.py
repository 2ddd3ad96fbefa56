"""Model files through huggingface_hub's cache, and what to do when they cannot be had.

HF_HOME and HF_HUB_OFFLINE hold as everywhere; `offline=True` is HF_HUB_OFFLINE for one call.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.errors import InvalidEncoder, MissingExtra, MissingWeights


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


def fetch_model_file(source: str, file: str, offline: bool) -> Path | None:
    """Return a file of a local folder or a hub repository; None if it has no such file."""
    if Path(source).is_dir():
        path = Path(source) / file
        return path if path.is_file() else None
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        return Path(hf_hub_download(source, file, local_files_only=offline))
    except HFValidationError as error:
        raise InvalidEncoder(
            f"Expected a folder, or ORG/NAME as on the hub, found {source!r}."
        ) from error
    except LocalEntryNotFoundError as error:  # an EntryNotFoundError, but the hub may have it
        raise missing_weights(f"hf:{source}", source, offline, error) from error
    except EntryNotFoundError:
        return None
    except OSError as error:  # no such repository, or not for us
        raise missing_weights(f"hf:{source}", source, offline, error) from error


def missing_weights(
    encoder: str, repository: str, offline: bool, cause: BaseException
) -> MissingWeights:
    """Return the error to raise: which files, why not, and the commands that get them."""
    from huggingface_hub import constants

    get = f"hf download {repository}"
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
