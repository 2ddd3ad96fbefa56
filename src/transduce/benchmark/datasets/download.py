"""Download a file: resumed where it stopped, checked before it gets its name."""

import contextlib
import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from transduce.errors import DownloadFailed

TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 3
BLOCK = 1 << 20
AGENT = "transduce (dataset preparation)"

DownloadProgress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


def download_file(
    url: str,
    path: Path,
    *,
    md5: str = "",
    progress: DownloadProgress = lambda done, total: None,
    attempts: int = ATTEMPTS,
) -> None:
    """Download `url` to `path`, resuming a partial download."""
    if not url.startswith(("https://", "http://")):
        raise DownloadFailed(f"Expected an http address, found {url!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    for attempt in range(attempts):
        try:
            _resume(url, partial, progress)
            break
        except DownloadFailed:  # it answered, and trying again will not change what it says
            raise
        except (OSError, http.client.HTTPException) as error:
            if attempt == attempts - 1 or isinstance(error, urllib.error.HTTPError):
                raise DownloadFailed(
                    f"Expected {path.name} from {url}, found {error}; run it again to go on "
                    f"where it stopped, or put the file at {path} yourself."
                ) from error
    if md5:
        try:
            check_md5(partial, md5)
        except DownloadFailed:
            _forget(partial)
            raise
    partial.replace(path)
    _forget(partial)


def check_md5(path: Path, md5: str) -> None:
    """Refuse a file that is not the published one."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if digest != md5:
        raise DownloadFailed(
            f"Expected {path.name.removesuffix('.part')} with MD5 {md5}, found {digest}: it is "
            "damaged or another file; delete it and get it again."
        )


def _resume(url: str, partial: Path, progress: DownloadProgress) -> None:
    done = partial.stat().st_size if partial.exists() else 0
    tag = _tag_file(partial)
    headers = {"User-Agent": AGENT}
    if done and tag.exists():  # else it may have changed meanwhile: begin again
        headers |= {"Range": f"bytes={done}-", "If-Range": tag.read_text(encoding="utf-8")}
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT
        )
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing after what we have
            return
        raise
    with response:
        _refuse_page(response, partial)
        resumed = response.status == 206
        done = done if resumed else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        validator = response.headers.get("ETag") or response.headers.get("Last-Modified")
        with contextlib.suppress(FileNotFoundError):
            tag.unlink()
        if validator and not validator.startswith("W/"):
            tag.write_text(validator, encoding="utf-8")
        with partial.open("ab" if resumed else "wb") as file:
            while block := response.read(BLOCK):
                file.write(block)
                done += len(block)
                progress(done, total)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _refuse_page(response: http.client.HTTPResponse, partial: Path) -> None:
    """Refuse a web page: many servers answer a lost file, or a question, with one."""
    if response.headers.get_content_type() == "text/html":
        raise DownloadFailed(
            f"Expected the file {partial.name.removesuffix('.part')} from {response.url}, found a "
            "web page; open it in a browser."
        )


def _tag_file(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")


def _forget(partial: Path) -> None:
    for path in (partial, _tag_file(partial)):
        path.unlink(missing_ok=True)
