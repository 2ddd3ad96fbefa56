"""Shapes are checked while the tests run, and only then."""

import builtins
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# The rooms behind the front doors: `Task` and the settings refuse bad values in words of their own,
# and numba must see the compiled kernels as they are. `mixtures.family` slices rows a hundred times
# a task: checking that took most of the tests' time, and its callers are checked.
CHECKED = [
    "benchmarks.figures",
    "transduce.benchmark.episodes.rows",
    "transduce.benchmark.episodes.sampler",
    "transduce.methods.adam",
    "transduce.methods.matching",
    "transduce.methods.prototypes",
    "transduce.mixtures.assignment",
    "transduce.mixtures.dirichlet",
    "transduce.mixtures.components",
    "transduce.mixtures.em",
    "transduce.mixtures.expectation",
    "transduce.mixtures.queries",
    "transduce.mixtures.scores",
    "transduce.mixtures.gaussian",
    "transduce.mixtures.kl_centroid",
    "transduce.simplex.grouping",
    "transduce.simplex.probabilities",
]
install_import_hook(CHECKED, "beartype.beartype")

# The first example of a test may compile a kernel: no deadline, and the same examples each time.
settings.register_profile("transduce", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("transduce")


@pytest.fixture
def broken_import(monkeypatch):
    """Importing a package raises, as if it had not been imported before."""

    def break_it(package, error):
        original = builtins.__import__

        def importing(name, *arguments, **options):
            if name == package:
                raise error
            return original(name, *arguments, **options)

        monkeypatch.delitem(sys.modules, package, raising=False)
        monkeypatch.setattr(builtins, "__import__", importing)

    return break_it


@pytest.fixture(scope="module")
def local_ray():
    """A Ray of two cores on this machine; it takes seconds to start."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100_000_000,
        runtime_env={"env_vars": {"PYTHONPATH": f"{Path.cwd()}:{Path.cwd()}/src"}},
    )
    yield ray
    ray.shutdown()
