"""Progress on stderr: a bar on a terminal, a line now and then in a log, nothing if quiet."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from transduce.cli.console import note

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def progress_bar(
    title: str, total: int, *, quiet: bool, of: str = "img"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of images (or what `of` says) just done."""
    if quiet:
        yield lambda images: None
    elif sys.stderr.isatty():
        with _bar(title, total, of) as advance:
            yield advance
    else:
        yield _lines(title, total, of)


@contextlib.contextmanager
def _bar(title: str, total: int, of: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    start = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,}/{task.total:,}  {task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, rate="")
        done = 0

        def advance(images: int) -> None:
            nonlocal done
            done += images
            bar.update(task, completed=done, rate=_rate(done, start, of))

        yield advance


def _lines(title: str, total: int, of: str) -> Callable[[int], None]:
    start = last = time.monotonic()
    done = 0

    def advance(images: int) -> None:
        nonlocal done, last
        done += images
        now = time.monotonic()
        if now - last > SECONDS_BETWEEN_LINES or done == total:
            last = now
            note(f"{title} {done:,}/{total:,}  {_rate(done, start, of)}")

    return advance


@contextlib.contextmanager
def download_bar(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of bytes just received."""
    if quiet:
        yield lambda size: None
    elif sys.stderr.isatty():
        from rich import progress as rich
        from rich.console import Console

        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=24),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            rich.TimeRemainingColumn(compact=True),
        )
        with rich.Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(title, total=total)
            yield lambda size: bar.advance(task, size)
    else:
        note(f"{title} ({total / 1e6:,.1f} MB)")
        tell, done = bytes_fetched(title), 0

        def advance(size: int) -> None:
            nonlocal done
            done += size
            tell(done, total)

        yield advance


def bytes_fetched(title: str) -> Callable[[int, int | None], None]:
    """A function to call with the bytes so far, and the bytes in all where they are known."""
    last = time.monotonic()

    def tell(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            note(f"{title} {done / 1e6:,.0f}" + (f" of {total / 1e6:,.0f} MB" if total else " MB"))

    return tell


def _rate(done: int, start: float, of: str) -> str:
    return f"{done / max(1e-9, time.monotonic() - start):,.1f} {of}/s"
