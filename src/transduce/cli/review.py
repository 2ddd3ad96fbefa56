"""`transduce review`: correct the labels of a run in the browser."""

import contextlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.console import folder_name, note, say

if TYPE_CHECKING:
    from transduce.labeling.journal import Journal


def review_command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory, such as out/transduce-001.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Ask about every image, not only the doubtful ones.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="0 is any free one.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Correct labels in the browser with single keys, then solve again with the corrections.

    The page is served to this machine alone, at an address with a secret in it. Every answer
    is saved at once in RUN/answers.jsonl, and RUN/reviewed.csv is made from it. Ctrl-C ends it.
    """
    from transduce.labeling.review.app import serve_review
    from transduce.labeling.review.lock import only_review
    from transduce.labeling.review.session import ReviewSession
    from transduce.labeling.run_directory import RunDirectory

    loaded = RunDirectory.load(run)
    with contextlib.ExitStack() as locks:
        locks.enter_context(only_review(run))
        session = ReviewSession(loaded, everything=everything, locks=locks)
        left = session.state()["left"]

        def announce(address: str) -> None:
            note(f"{left:,} {'image' if left == 1 else 'images'} of {folder_name(run)} to look at")
            say(f"Open {address}")
            note("Keys: 1-9 class, u unknown, s skip, z undo, r solve again. Ctrl-C ends.")
            if open_browser and _has_screen():
                webbrowser.open(address)

        with contextlib.suppress(KeyboardInterrupt):
            serve_review(session, port, announce)
        _say_saved(session.corrections.journal)


def _say_saved(journal: "Journal") -> None:
    """Say what the file has, not what we remember."""
    journal.refresh()
    saved = len(journal.review)
    if saved:
        answers = "answer is" if saved == 1 else "answers are"
        note(f"{saved:,} {answers} in {journal.path}")


def _has_screen() -> bool:
    """Without one, a browser in the terminal would take the keyboard away."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
