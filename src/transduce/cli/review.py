"""`transduce review`: correct the labels of a run in the browser, or audit them."""

import contextlib
import getpass
import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from transduce.cli.console import folder_name, note, say
from transduce.errors import InvalidSetting

if TYPE_CHECKING:
    from transduce.labeling.review.session import ReviewSession
    from transduce.labeling.run_directory import RunDirectory


def review_command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory, such as out/transduce-001.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Ask about every image, not only the doubtful ones.")
    ] = False,
    only: Annotated[
        Path | None,
        typer.Option(metavar="LIST.TXT", help="Ask about these images: file names, one a line."),
    ] = None,
    audit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Ask about N images drawn at random, for transduce certify."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw the audit with this seed.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the images are, of a run of --features."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="0 is any free one.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Correct labels in the browser with single keys, then solve again with the corrections.

    The page is served to this machine alone, at an address with a secret in it. Every answer
    is saved at once in RUN/answers.jsonl, and RUN/reviewed.csv is made from it. With --audit the
    answers are kept apart: nothing is solved with them. Ctrl-C ends it.
    """
    from transduce.labeling.review.app import serve_review
    from transduce.labeling.review.lock import only_review
    from transduce.labeling.run_directory import RunDirectory

    if audit is not None and (everything or only):
        raise InvalidSetting("Expected --audit without --all and --only, found both; choose one.")
    if images is not None and not images.is_dir():
        raise InvalidSetting(f"Expected a folder of images, found none at {images}.")
    loaded = RunDirectory.load(run)
    with contextlib.ExitStack() as locks:
        locks.enter_context(only_review(run))
        session = _session(loaded, everything, only, audit, seed, images, locks)
        state = session.state()
        if state["no_images"]:
            note(state["no_images"])

        def announce(address: str) -> None:
            left = state["left"]
            note(f"{left:,} {'image' if left == 1 else 'images'} of {folder_name(run)} to look at")
            say(f"Open {address}")
            for line in _from_elsewhere(address):
                note(line)
            note("Keys: Enter right, 1-9 class, / type, u unknown, z undo, ? all. Ctrl-C ends.")
            if open_browser and _has_screen():
                webbrowser.open(address)

        with contextlib.suppress(KeyboardInterrupt):
            serve_review(session, port, announce)
        _say_saved(session)


def _session(
    run: "RunDirectory",
    everything: bool,
    only: Path | None,
    audit: int | None,
    seed: int | None,
    images: Path | None,
    locks: contextlib.ExitStack,
) -> "ReviewSession":
    from transduce.labeling.review.queue import rows_named
    from transduce.labeling.review.session import ReviewSession
    from transduce.labeling.trust.audit import draw_audit

    rows = drawn = None
    if only is not None:
        rows = rows_named(only.read_text(encoding="utf-8"), run.labels.file_name)
    if audit is not None:
        drawn = draw_audit(run, audit, seed)
        note(f"Audit {drawn.number}, drawn with seed {drawn.seed}: {audit:,} images at random")
    return ReviewSession(
        run, everything=everything, only=rows, audit=drawn, images=images, locks=locks
    )


def _say_saved(session: "ReviewSession") -> None:
    """Print how many answers the file holds, read anew."""
    journal = session.corrections.journal
    journal.refresh()
    saved = len(session.corrections.labels)
    if saved:
        answers = "answer is" if saved == 1 else "answers are"
        note(f"{saved:,} {answers} in {journal.path}")
    if session.corrections.kind != "audit":
        return
    done, total = session.progress()
    folder = shlex.quote(str(session.run.folder))
    if done < total:
        note(f"{done:,} of {total:,} audited. Go on: transduce review {folder} --audit {total}")
    else:
        note(f"All {total:,} images audited. Next: transduce certify {folder}")


def _from_elsewhere(address: str) -> list[str]:
    """Return how to reach the page from the machine that this one was logged in to from."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return []
    port = urlsplit(address).port
    return [
        "From your own machine, open that address after:",
        f"  ssh -L {port}:127.0.0.1:{port} {getpass.getuser()}@{connection[2]}",
    ]


def _has_screen() -> bool:
    """Whether a browser would open a window: one in the terminal would take the keyboard away."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
