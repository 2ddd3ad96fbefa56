"""Model files of the hub: those of `pinned`, and those of open_clip and transformers.

A `HubModel` is fetched by `hub_download` alone. transformers and open_clip fetch theirs through
huggingface_hub; here is what keeps them from the network, and from waiting for one that is not
there.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from transduce.encoders.hub_cache import (
    COMMIT,
    CachedRepository,
    cache_folder,
    digest_in_cache,
    endpoint,
    hub_is_offline,
)
from transduce.encoders.hub_download import (
    HubUnreachable,
    RemoteFile,
    ask,
    check_reachable,
    download,
)
from transduce.errors import InvalidEncoder, MissingExtra, MissingWeights
from transduce.machine.atomic import sha256_of

# Begins a progress bar of a title and a number of bytes; what it yields is called with each step.
DownloadBar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]

_unreachable: ContextVar[str] = ContextVar("unreachable", default="")


def no_bar(title: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show nothing of a download."""
    return nullcontext(lambda size: None)


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
    optional : tuple of str
        Files that the repository may have too, such as weights beside a graph.
    """

    name: str
    repository: str
    revision: str
    files: Mapping[str, str]
    license: str = ""
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of a model on this machine, and the SHA-256 of each, computed from its bytes."""

    repository: str
    commit: str
    paths: Mapping[str, Path]
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Where the files came from and what they are, for the identity of an encoder."""
        files = ", ".join(f"{path} sha256:{digest}" for path, digest in self.digests.items())
        return f"{self.repository}@{self.commit}: {files}"


def fetch_hub_model(
    model: HubModel, *, offline: bool, bar: DownloadBar = no_bar, look_again: bool = False
) -> HubFiles:
    """Return the files of `model`, from the cache or the hub, their checksums compared.

    With `look_again` a branch is asked for anew, though its files are in the cache.

    Raises
    ------
    MissingWeights
        If a file is neither in the cache nor to be had.
    InvalidEncoder
        If a file is not the one that is pinned.
    """
    repository = CachedRepository(model.repository)
    moved = look_again and not COMMIT.fullmatch(model.revision)
    if moved or not cached_hub_model(model):
        if offline or hub_is_offline():
            raise _not_here(model, offline)
        try:
            check_reachable()
            _download_all(model, repository, bar)
        except HubUnreachable as error:
            raise MissingWeights(
                f"Expected the weights of {model.name} from {urlsplit(endpoint()).netloc}, found "
                f"{error}; try again with a network, or fetch them elsewhere (transduce download "
                f"{model.name}) and bring {repository.folder} here."
            ) from error
    commit = repository.commit(model.revision) or model.revision
    names = [*model.files, *model.optional]
    paths = {name: repository.file(commit, name) for name in names}
    paths = {name: path for name, path in paths.items() if path.is_file()}
    digests = {name: _checked_digest(path, name, model) for name, path in paths.items()}
    return HubFiles(model.repository, commit, paths, digests)


def cached_hub_model(model: HubModel) -> bool:
    """Whether every file of `model` is in the cache; nothing is downloaded, read or compared."""
    repository = CachedRepository(model.repository)
    commit = repository.commit(model.revision)
    return commit is not None and all(
        repository.file(commit, file).is_file() for file in model.files
    )


def _download_all(model: HubModel, repository: CachedRepository, bar: DownloadBar) -> None:
    """Download what is missing, of one commit, with one bar for all files."""
    revision = model.revision
    wanted: list[RemoteFile] = []
    for file in [*model.files, *model.optional]:
        remote = ask(repository, revision, file)
        if remote is None and file in model.files:
            raise InvalidEncoder(
                f"Expected {file} in {model.repository} at {revision}, found no such file; take a "
                "repository with ONNX files of both towers, and check HF_ENDPOINT if it is set."
            )
        if remote is not None:
            wanted.append(remote)
            revision = remote.commit
    missing = [remote for remote in wanted if not repository.file(revision, remote.path).is_file()]
    total = sum(remote.size for remote in missing)
    with bar(f"Downloading {model.name}, once", total) as advance:
        for remote in missing:
            download(remote, digest=model.files.get(remote.path, ""), advance=advance)
    repository.remember(model.revision, revision)


def _checked_digest(path: Path, name: str, model: HubModel) -> str:
    """Return the SHA-256 of a file; refused if it is another than was pinned or downloaded."""
    expected = model.files.get(name) or digest_in_cache(path)
    actual = sha256_of(path)
    if expected and actual != expected:
        raise InvalidEncoder(
            f"Expected the file of {model.name} with SHA-256 {expected}, found {actual} at "
            f"{path.resolve()}; it is damaged or was changed: delete it, and it is downloaded "
            "again."
        )
    return actual


def _not_here(model: HubModel, offline: bool) -> MissingWeights:
    switch = "leave --offline out" if offline else "unset HF_HUB_OFFLINE"
    return MissingWeights(
        f"Expected the weights of {model.name} in the cache {cache_folder()}, found none, and "
        f"nothing may be downloaded; {switch}, or fetch them where there is a network (transduce "
        f"download {model.name}) and bring that folder here."
    )


@contextmanager
def hub_mode(offline: bool, *, local: bool = False) -> Iterator[None]:
    """Keep every library in the block from downloading, if `offline` or if there is no network.

    A network that is not there is found out once, within seconds, where huggingface_hub would ask
    for every file, again and again; a `local` model does not ask. open_clip reports to the root
    logger, which would start to print everything: it is kept from it, as what matters is in our
    errors.
    """
    try:
        from huggingface_hub import constants
    except ImportError:
        raise MissingExtra("The Hugging Face hub", "hf") from None
    before, silence, root = constants.HF_HUB_OFFLINE, logging.NullHandler(), logging.getLogger()
    reason = "" if before or offline or local else _why_unreachable()
    constants.HF_HUB_OFFLINE = bool(before or offline or reason)
    root.addHandler(silence)
    token = _unreachable.set(reason)
    try:
        yield
    finally:
        _unreachable.reset(token)
        root.removeHandler(silence)
        constants.HF_HUB_OFFLINE = before


def _why_unreachable() -> str:
    try:
        check_reachable()
    except HubUnreachable as error:
        return str(error)
    return ""


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
    if _unreachable.get():
        return MissingWeights(
            f"Expected the weights of {encoder} in {where} or on the hub, found "
            f"{_unreachable.get()}; try again with a network, or run this where there is one and "
            f"bring that cache here: {get}"
        )
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
