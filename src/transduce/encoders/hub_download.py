"""Files of the Hugging Face hub by plain HTTP: ask, download, resume, compare the checksum.

The hub answers ORG/NAME/resolve/REVISION/PATH with the commit, the size and an etag in its headers:
the SHA-256 of a large file, git's SHA-1 of a small one. Proxies are those of the environment.
"""

import errno
import hashlib
import os
import queue
import re
import shutil
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.parse import quote, urljoin, urlsplit

from transduce.encoders.hub_cache import COMMIT, SHA256, CachedRepository, endpoint, token
from transduce.errors import InvalidEncoder

CONNECT_SECONDS = 4.0  # without a network the answer must come within five
READ_SECONDS = 30.0  # of silence in the middle of a file
CHUNK = 1 << 20
ATTEMPTS = 4  # of a download that breaks off; each goes on where the last one stopped
AGENT = "transduce"
LOCAL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)


class HubUnreachable(Exception):
    """No answer from the hub, or none that helps; the text is the reason, for a message."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the hub: its address, and what the hub says of it."""

    repository: CachedRepository
    path: str
    address: str
    commit: str
    etag: str
    size: int


def check_reachable() -> None:
    """Raise `HubUnreachable` unless the hub, or the proxy before it, takes a connection.

    In a thread, as the question for a name has no time limit of its own.
    """
    parts = urlsplit(endpoint())
    proxies = urllib.request.getproxies()
    proxy = "" if urllib.request.proxy_bypass(parts.hostname or "") else proxies.get(parts.scheme)
    target = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else parts
    host, port = target.hostname or "", target.port or (443 if target.scheme == "https" else 80)
    seconds = _seconds("HF_HUB_ETAG_TIMEOUT", CONNECT_SECONDS)
    answers: queue.SimpleQueue[OSError | None] = queue.SimpleQueue()

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=seconds).close()
            answers.put(None)
        except OSError as error:
            answers.put(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        error = answers.get(timeout=seconds)
    except queue.Empty:
        error = TimeoutError(f"no answer in {seconds:g} s")
    if error is not None:
        what = f"the proxy {host}" if proxy else host
        raise HubUnreachable(f"no network to {what} ({error.strerror or error})")


def ask(repository: CachedRepository, revision: str, path: str) -> RemoteFile | None:
    """Return what the hub says of a file; None if the repository has no such file."""
    address = f"{endpoint()}/{repository.name}/resolve/{quote(revision, safe='')}/{quote(path)}"
    request = _request(address, method="HEAD")
    try:
        with _opener(stop_at_files=True).open(
            request, timeout=_seconds("HF_HUB_ETAG_TIMEOUT", 2 * CONNECT_SECONDS)
        ) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as error:
        with error:
            headers = error.headers
            if error.code == 404 and headers.get("X-Error-Code") == "EntryNotFound":
                return None
            if not 300 <= error.code < 400:
                raise HubUnreachable(_refusal(error, repository)) from None
    except (OSError, HTTPException) as error:
        raise HubUnreachable(_reason(error)) from error
    etag = headers.get("X-Linked-Etag") or headers.get("ETag") or ""
    return RemoteFile(
        repository=repository,
        path=path,
        address=address,
        commit=_commit(headers, revision),
        etag=etag.removeprefix("W/").strip('"')
        or hashlib.sha256(address.encode()).hexdigest()[:40],
        size=int(headers.get("X-Linked-Size") or headers.get("Content-Length") or 0),
    )


def download(
    remote: RemoteFile, *, digest: str = "", advance: Callable[[int], None] = lambda size: None
) -> Path:
    """Return the path of a file in the cache, downloaded if it is not there.

    `digest` is the SHA-256 that the file must have, where it is known beforehand; otherwise it is
    compared with what the hub says. `advance` is called with the bytes of each step.
    """
    blob = remote.repository.blob(remote.etag)
    blob.parent.mkdir(parents=True, exist_ok=True)
    with remote.repository.locked(blob):
        if not blob.is_file():
            partial = blob.with_name(f"{blob.name}.incomplete")
            _check_space(blob.parent, remote.size, partial)
            _fetch(remote, partial, advance)
            _check(partial, remote, digest)
            partial.replace(blob)
        else:
            advance(remote.size)
    remote.repository.link(remote.commit, remote.path, blob)
    return remote.repository.file(remote.commit, remote.path)


def _fetch(remote: RemoteFile, partial: Path, advance: Callable[[int], None]) -> None:
    """Bring `partial` to the size that the hub says, going on where it stopped before."""
    kept = partial.stat().st_size if partial.is_file() else 0
    if kept > remote.size:
        partial.unlink()
        kept = 0
    advance(kept)
    if not remote.size:
        partial.touch()
    failed = 0
    while kept < remote.size:
        try:
            got = _fetch_rest(remote, partial, kept, advance)
        except (OSError, HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404):
                raise HubUnreachable(_refusal(error, remote.repository)) from None
            if _is_local(error):  # a full disk is no fault of the network
                raise
            got, reason = partial.stat().st_size if partial.is_file() else 0, _reason(error)
        else:
            reason = "the connection ended early"
        failed = 0 if got > kept else failed + 1
        kept = got
        if failed == ATTEMPTS:
            raise HubUnreachable(
                f"{reason}, with {kept / 1e6:,.0f} of {remote.size / 1e6:,.0f} MB of {remote.path} "
                "here; the same command goes on from there"
            )


def _fetch_rest(
    remote: RemoteFile, partial: Path, start: int, advance: Callable[[int], None]
) -> int:
    request = _request(remote.address)
    if start:
        request.add_header("Range", f"bytes={start}-")
    seconds = _seconds("HF_HUB_DOWNLOAD_TIMEOUT", READ_SECONDS)
    with _opener().open(request, timeout=seconds) as answer:
        if start and answer.status != 206:  # a server without ranges begins anew
            advance(-start)
            start = 0
        with partial.open("ab" if start else "wb") as file:
            file.truncate(start)
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                start += len(chunk)
                advance(len(chunk))
    return start


def _check(partial: Path, remote: RemoteFile, digest: str) -> None:
    """Remove a download that is not the file it should be, and say so."""
    expected = digest or (remote.etag if SHA256.fullmatch(remote.etag) else "")
    kind = "sha256" if expected else "sha1"
    if not expected and not COMMIT.fullmatch(remote.etag):
        return
    hasher = hashlib.new(kind, usedforsecurity=False)
    if kind == "sha1":  # git's name of a small file
        expected = remote.etag
        hasher.update(f"blob {partial.stat().st_size}\0".encode())
    with partial.open("rb") as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
    if hasher.hexdigest() != expected:
        partial.unlink()
        raise InvalidEncoder(
            f"Expected {remote.path} of {remote.repository.name} with checksum {expected}, found "
            f"{hasher.hexdigest()}; it was damaged on the way or is not the file that is meant: "
            "try again, and check HF_ENDPOINT if it is set."
        )


def _check_space(folder: Path, size: int, partial: Path) -> None:
    missing = size - (partial.stat().st_size if partial.is_file() else 0)
    free = shutil.disk_usage(folder).free
    if missing > free:
        raise InvalidEncoder(
            f"Expected {missing / 1e6:,.0f} MB free in {folder}, found {free / 1e6:,.0f} MB; make "
            "room, or point HF_HOME to a larger disk."
        )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects without sending the token to another host or turning HEAD into GET."""

    def __init__(self, stop_at_files: bool) -> None:
        self._stop_at_files = stop_at_files

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        new = urljoin(req.full_url, newurl)
        same_host = urlsplit(new).netloc == urlsplit(req.full_url).netloc
        if self._stop_at_files and (headers.get("X-Linked-Etag") or not same_host):
            return None  # the file lies elsewhere; what we want to know is in these headers
        follow = super().redirect_request(req, fp, code, msg, headers, new)
        if follow is not None:
            follow.method = req.get_method()
            if same_host and req.has_header("Authorization"):
                value = req.get_header("Authorization") or ""
                follow.add_unredirected_header("Authorization", value)
        return follow


def _opener(*, stop_at_files: bool = False) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects(stop_at_files))


def _request(address: str, method: str = "GET") -> urllib.request.Request:
    headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
    request = urllib.request.Request(address, headers=headers, method=method)
    secret = token()
    if secret:
        request.add_unredirected_header("Authorization", f"Bearer {secret}")
    return request


def _commit(headers: HTTPMessage, revision: str) -> str:
    commit = headers.get("X-Repo-Commit") or ""
    if COMMIT.fullmatch(commit):
        return commit
    return revision if COMMIT.fullmatch(revision) else re.sub(r"[^\w.-]", "-", revision)


def _refusal(error: urllib.error.HTTPError, repository: CachedRepository) -> str:
    if error.code in (401, 403):
        return f"{repository.name} is private, gated or not there (set HF_TOKEN if it is yours)"
    if error.code == 404:
        return f"no {repository.name} at that revision; check the name"
    return f"the answer {error.code} {error.reason} from {urlsplit(endpoint()).hostname}"


def _reason(error: BaseException) -> str:
    """Return the reason of a failure, out of the errors that urllib wraps it in."""
    inner = getattr(error, "reason", None)
    error = inner if isinstance(inner, BaseException) else error
    return str(getattr(error, "strerror", "") or error or type(error).__name__)


def _is_local(error: BaseException) -> bool:
    """Whether an error is of our own disk, and trying again would not help."""
    return isinstance(error, OSError) and error.errno in LOCAL_ERRORS


def _seconds(variable: str, usual: float) -> float:
    with suppress(ValueError):
        return float(os.environ.get(variable) or usual)
    return usual
