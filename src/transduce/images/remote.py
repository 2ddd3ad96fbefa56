"""Files behind a URL (s3://, gs://, hf://, https:// ...), through fsspec and its plug-ins."""

from typing import Any

from transduce.errors import MissingExtra, UnreachableSource
from transduce.machine.network import check_local

# Protocols whose fsspec plug-in is a package of its own, and our extra that brings it.
EXTRAS = {"s3": "s3", "s3a": "s3", "hf": "hf"}


def filesystem(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for the URL, and the path inside it."""
    check_local(url)
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"Reading {url}", EXTRAS.get(_protocol(url), "remote")) from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = EXTRAS.get(_protocol(url))
        if extra is None:
            raise UnreachableSource(f"Cannot open {url}: {error}") from None
        raise MissingExtra(f"Reading {url}", extra) from None
    except Exception as error:  # each file system has errors of its own kinds
        raise UnreachableSource(
            f"Expected a URL that fsspec knows, found {url}: {error}."
        ) from None
    return system, path


def open_remote(url: str) -> Any:  # noqa: ANN401 - fsspec's files have no common type
    """Open the file at a URL for reading."""
    system, path = filesystem(url)
    return system.open(path, "rb")


def _protocol(url: str) -> str:
    return url.partition("://")[0]
