"""`import transduce` stays light, and every public name is there."""

import subprocess
import sys

import pytest

import transduce

HEAVY = ["numba", "torch", "sklearn", "scipy", "joblib", "matplotlib", "pyarrow", "PIL"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("module", HEAVY)
def test_nothing_heavy_is_imported(module):
    done = run(f"import sys, transduce; dir(transduce); sys.exit({module!r} in sys.modules)")
    assert done.returncode == 0


def test_the_methods_are_listed_without_anything_heavy():
    done = run(
        "import sys; from transduce import METHODS, EMDirichlet, Task; list(METHODS);"
        "print(sorted({'numba', 'torch', 'sklearn', 'joblib', 'pyarrow'} & set(sys.modules)))"
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", transduce.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name):
    value = getattr(transduce, name)
    assert value is not None
    assert name in dir(transduce)
    assert value.__doc__


def test_every_method_can_be_imported():
    for method in transduce.METHODS.values():
        assert getattr(transduce, method.__name__) is method
