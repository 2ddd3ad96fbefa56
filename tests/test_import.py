"""`import transduce` stays light."""

import subprocess
import sys

import pytest

HEAVY = ["numba", "torch", "sklearn", "scipy.optimize", "joblib", "matplotlib", "pyarrow"]


@pytest.mark.parametrize("module", HEAVY)
def test_nothing_heavy_is_imported(module):
    code = f"import sys, transduce; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_public_names_exist():
    import transduce

    for name in transduce.__all__:
        assert getattr(transduce, name) is not None
