"""The modules of the data rooms import each other in one direction, also inside functions."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "transduce"


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", ["images", "features"])
def test_no_module_is_imported_by_what_it_imports(room):
    modules = {
        f"transduce.{room}.{path.stem}": path
        for path in (SOURCE / room).glob("*.py")
        if path.stem != "__init__"
    }
    graph = {name: set(imports_of(path)) & set(modules) for name, path in modules.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)
