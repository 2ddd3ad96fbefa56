import sys

import pytest

from tests.cli.drawings import write_drawings
from transduce.cli.main import run_command_line


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in `tmp_path`; returns (exit code, stdout, stderr)."""
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["transduce", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run_command_line()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def drawings(tmp_path_factory):
    """A folder of 12 drawings of three classes."""
    return write_drawings(tmp_path_factory.mktemp("drawn") / "images", 12)
