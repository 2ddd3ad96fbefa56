"""Write docs/cli.md from `--help` of every verb: python docs/generate_cli.py"""

import sys
from pathlib import Path

import click
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
    root = typer.main.get_command(app)
    sections = [INTRODUCTION, *_sections(root, "transduce", None)]
    return "\n".join(sections)


def _sections(command: click.Command, name: str, parent: click.Context | None) -> list[str]:
    context = click.Context(
        command, info_name=name.split()[-1], parent=parent, terminal_width=WIDTH,
        max_content_width=WIDTH,
    )  # fmt: skip
    sections = [f"## {name}\n\n```text\n{_help(command, context)}\n```\n"]
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            assert found is not None
            sections += _sections(found, f"{name} {part}", context)
    return sections


def _help(command: click.Command, context: click.Context) -> str:
    # The options for completion name the shell that runs this: left out, described above.
    lines = command.get_help(context).rstrip().splitlines()
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}", file=sys.stderr)
