"""What all verbs share: results on stdout, the rest on stderr, exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

WITH_PROBLEMS = 1
BAD_INPUT = 2
STOPPED = 130


def say(*lines: str) -> None:
    """A result, on stdout. Plain print: Rich would wrap paths and color numbers."""
    print(*lines, sep="\n", flush=True)


def note(line: str) -> None:
    """Something to know on the way, on stderr."""
    print(line, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    note(f"Error: {message}")


def say_json(value: dict[str, Any]) -> None:
    say(json.dumps(value, indent=2, ensure_ascii=False))


def folder_name(folder: Path) -> str:
    """As typed, with the slash that marks a folder."""
    return f"{str(folder).rstrip('/')}/"
