"""The layout holds: who may import whom, and how large a file may grow."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "transduce"
FILES = sorted(SOURCE.rglob("*.py"))

CENTER = {"errors", "catalogue"}
NOUNS = CENTER | {"task", "validation", "simplex"}
ROOMS = {
    # what every room may use
    "errors": set(),
    "catalogue": {"errors"},
    "validation": {"errors"},
    "machine": {"errors", "simplex"},
    # the maths column
    "simplex": {"errors"},
    "task": {"errors", "validation", "simplex"},
    "mixtures": {"errors", "simplex"},
    "methods": NOUNS | {"mixtures"},
    "estimator": NOUNS | {"methods"},
    "testing": NOUNS | {"methods"},
    # the data column: never the methods
    "encoders": CENTER | {"validation", "machine"},
    "images": CENTER | {"machine", "encoders"},
    "features": CENTER | {"validation", "machine", "simplex", "encoders", "images"},
    # the product and the research, which never import each other
    "labeling": NOUNS | {"machine", "encoders", "features", "images", "methods"},
    "benchmark": NOUNS | {"machine", "encoders", "features", "images", "methods"},
}
# these may import every room above, and nobody imports them
ROOMS["cli"] = set(ROOMS)
ROOMS["__main__"] = {"cli"}
NO_NAMES = {"utils", "helpers", "base", "common", "misc", "manager"}


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path):
    """The rooms of this package that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            modules = [node.module or ""]
            if node.module == "transduce":
                modules = [f"transduce.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "transduce" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_follow_the_plan(path):
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is a new room: say in ROOMS what it may import"
    assert set(imports_of(path)) - {room} <= ROOMS[room]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_small_and_named(path):
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem not in NO_NAMES


def test_only_the_kernels_import_numba():
    for path in FILES:
        text = path.read_text()
        if path.name != "kernels.py":
            assert "import numba" not in text
            assert "from numba" not in text
