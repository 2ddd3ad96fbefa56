"""Write docs/cli.md from `--help` of every verb, by `python docs/generate_cli.py`."""

import sys
from pathlib import Path
from typing import Any

import typer

from transduce.cli.main import app

PAGE = Path(__file__).with_name("cli.md")
WIDTH = 80
INTRODUCTION = """\
# The command line

Made from `--help` by `python docs/generate_cli.py`; a test checks that it is current.

Results go to stdout, progress and remarks to stderr. Exit codes: 0 fine, 1 finished with
problems, 2 bad input, 130 stopped by Ctrl-C. `--json` prints results for programs.

Completion of commands and options in bash, zsh, fish and PowerShell:
`transduce --install-completion`, or `transduce --show-completion` to see it first.
"""


def page() -> str:
    """The text of docs/cli.md."""
    root = typer.main.get_command(app)
    sections = [INTRODUCTION, *_sections(root, "transduce", None)]
    return "\n".join(sections)


def _sections(command: Any, name: str, parent: Any) -> list[str]:  # noqa: ANN401 - click's
    context = command.context_class(
        command, info_name=name.split()[-1], parent=parent, terminal_width=WIDTH,
        max_content_width=WIDTH, **command.context_settings,
    )  # fmt: skip
    lines = command.get_help(context).rstrip().splitlines()
    text = "\n".join(line.rstrip() for line in lines)
    sections = [f"## {name}\n\n```text\n{text}\n```\n"]
    parts = command.list_commands(context) if hasattr(command, "list_commands") else []
    for part in parts:
        sections += _sections(command.get_command(context, part), f"{name} {part}", context)
    return sections


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}", file=sys.stderr)
