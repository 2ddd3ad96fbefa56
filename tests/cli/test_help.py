"""docs/cli.md is what `--help` says; list and completion answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import transduce
from docs.generate_cli import page
from transduce.cli.help import LabelHelp
from transduce.cli.main import app
from transduce.encoders import ENCODERS
from transduce.methods import METHODS

ROOT = Path(__file__).parents[2]


def test_the_page_is_current():
    current = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert current == page(), "run: python docs/generate_cli.py"
    for verb in (entry.name for entry in app.registered_commands):
        assert f"## transduce {verb}\n" in current
    assert all(len(line) <= 100 for line in current.splitlines())


def test_lists(command):
    code, out, _ = command("list", "methods")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == {"auto", *METHODS}
    _, out, _ = command("list", "encoders", "--json")
    assert len(json.loads(out)["encoders"]) == len(ENCODERS)
    _, out, _ = command("list", "datasets")
    assert "eurosat" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert command("list", "nothing")[0] == 2


def test_completion_knows_the_verbs():
    environment = {
        **os.environ, "_TRANSDUCE_COMPLETE": "complete_bash", "COMP_WORDS": "transduce ",
        "COMP_CWORD": "1",
    }  # fmt: skip
    script = "from transduce.cli.main import run_command_line; run_command_line()"
    made = subprocess.run([sys.executable, "-c", script], env=environment, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert {"label", "review", "export", "doctor"} <= set(made.stdout.split())


def test_version(command):
    assert command("--version") == (0, f"transduce {transduce.__version__}\n", "")


def test_help_is_whole_and_in_groups(command):
    _, out, _ = command("--help")
    assert "..." not in out.partition("\n\n")[2]
    assert out.index("Label images:") < out.index("Prepare:") < out.index("Research:")
    _, out, _ = command("label", "--help")
    for heading in LabelHelp.headings:
        assert f"\n{heading}:\n" in out
    options = {name for names in LabelHelp.headings.values() for name in names}
    assert {"classes", "encoder", "out", "device"} <= options
    assert "Examples:\n    transduce label photos/ --classes cat,dog,fox" in out
