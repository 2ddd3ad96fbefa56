import sys

import pytest

from transduce.cli.main import main


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in `tmp_path`; returns (exit code, stdout, stderr)."""
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["transduce", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
