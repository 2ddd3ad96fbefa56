"""The maths column takes arrays and returns arrays: no files, no progress bars, no data column."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "transduce"
MATHS = {"simplex", "mixtures", "methods", "task", "estimator", "validation", "testing"}
LIBRARIES = {"pathlib", "safetensors", "shutil", "tempfile", "rich", "tqdm", "typer", "sqlite3"}
FILE_CALLS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "save", "savez",
              "load", "fromfile", "tofile", "loadtxt", "savetxt", "memmap", "print"}  # fmt: skip


def names_in(path):
    """Libraries imported and functions called in a file, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call):
            function = node.func
            yield (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )


FILES = [
    p
    for p in sorted(SOURCE.rglob("*.py"))
    if p.relative_to(SOURCE).parts[0].removesuffix(".py") in MATHS
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_neither_files_nor_progress_bars(path):
    allowed = {"load"} if path.name == "plugins.py" else set()  # EntryPoint.load imports a module
    assert set(names_in(path)) & (LIBRARIES | FILE_CALLS) <= allowed
