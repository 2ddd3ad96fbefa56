"""Output and exit codes that all verbs share: results on stdout, the rest on stderr."""

import json
import sys
from pathlib import Path
from typing import Any

WITH_PROBLEMS = 1
BAD_INPUT = 2
STOPPED = 130


def say(*lines: str) -> None:
    """Print a result, on stdout. Plain print: Rich would wrap paths and color numbers."""
    print(*lines, sep="\n", flush=True)


def note(line: str) -> None:
    """Print a remark, on stderr."""
    print(line, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print an error, on stderr."""
    note(f"Error: {message}")


def say_json(value: dict[str, Any]) -> None:
    """Print a result as JSON, on stdout."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def folder_name(folder: str | Path) -> str:
    """The folder as it was typed, with a slash at the end."""
    return f"{str(folder).rstrip('/')}/"
