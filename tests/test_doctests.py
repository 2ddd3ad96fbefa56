"""The examples in docstrings run, and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
MODULES = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in FILES]


@pytest.mark.parametrize("name", [name.removesuffix(".__init__") for name in MODULES])
def test_examples_of(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert not result.failed
