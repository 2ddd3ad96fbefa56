"""Where model files lie: huggingface_hub's cache and settings, without that library.

    models--ORG--NAME/refs/main                   the commit that a branch or tag meant last
    models--ORG--NAME/snapshots/COMMIT/PATH       a link to the blob of that file
    models--ORG--NAME/blobs/ETAG                  the file; of a large file the name is its SHA-256
    models--ORG--NAME/blobs/ETAG.incomplete       a download that was stopped

HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN mean what they mean there. They are
read when they are needed: a program may set them after the import.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import InvalidEncoder
from transduce.machine.atomic import hold
from transduce.machine.network import is_offline

ENDPOINT = "https://huggingface.co"
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
REVISION = re.compile(r"[\w.][\w./-]*", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
TRUE = frozenset({"1", "on", "yes", "true"})


def cache_folder() -> Path:
    """Return the folder of huggingface_hub's cache."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    return _home() / "hub"


def endpoint() -> str:
    """Return the address of the hub, or of the mirror that HF_ENDPOINT names."""
    return (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


def hub_is_offline() -> bool:
    """Whether the environment forbids downloads."""
    values = (os.environ.get(name, "") for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
    return is_offline() or any(value.strip().lower() in TRUE for value in values)


def token() -> str | None:
    """Return the token for gated models, of HF_TOKEN or of `hf auth login`."""
    if os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").strip().lower() in TRUE:
        return None
    given = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    if not given:
        with contextlib.suppress(OSError, ValueError):
            path = os.environ.get("HF_TOKEN_PATH") or _home() / "token"
            given = Path(path).expanduser().read_text(encoding="utf-8")
    return (given or "").strip() or None


@dataclass(frozen=True, slots=True)
class CachedRepository:
    """A repository of the hub, as far as it is in the cache."""

    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or ".." in self.name:
            raise InvalidEncoder(f"Expected ORG/NAME as on the hub, found {self.name!r}.")

    @property
    def folder(self) -> Path:
        """The folder of the repository in the cache."""
        return cache_folder() / f"models--{self.name.replace('/', '--')}"

    def commit(self, revision: str) -> str | None:
        """Return the commit that a revision is, or was when it was last looked up."""
        if COMMIT.fullmatch(revision):
            return revision
        try:
            known = (self.folder / "refs" / revision).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return None
        return known if COMMIT.fullmatch(known) else None

    def remember(self, revision: str, commit: str) -> None:
        """Write down which commit a branch or tag is."""
        if revision != commit and COMMIT.fullmatch(commit):
            path = self.folder / "refs" / revision
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(commit, encoding="utf-8")

    def file(self, commit: str, path: str) -> Path:
        """Return where a file of a commit lies, once it is there."""
        return self.folder / "snapshots" / commit / path

    def blob(self, etag: str) -> Path:
        """Return where the contents of a file lie; the etag comes from a server."""
        safe = etag if re.fullmatch(r"[\w-]+", etag, re.ASCII) else _hash(etag)
        return self.folder / "blobs" / safe

    def link(self, commit: str, path: str, blob: Path) -> Path:
        """Make `path` of a commit a link to its blob; a copy where links cannot be made."""
        target = self.file(commit, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
        try:
            target.symlink_to(os.path.relpath(blob, target.parent))
        except FileExistsError:  # another process was quicker
            pass
        except OSError:
            shutil.copyfile(blob, target)
        return target

    @contextlib.contextmanager
    def locked(self, blob: Path) -> Iterator[None]:
        """Let one process at a time write a blob: the lock is that of huggingface_hub."""
        path = cache_folder() / ".locks" / self.folder.name / f"{blob.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            hold(file)  # without locks two downloads at once cost time, no correctness
            yield


def digest_in_cache(path: Path) -> str:
    """Return the SHA-256 that the name of a cached file's blob promises; "" if it does not."""
    name = path.resolve().name
    return name if SHA256.fullmatch(name) and path.is_symlink() else ""


def _home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HF_HOME") or Path(cache, "huggingface")).expanduser()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
