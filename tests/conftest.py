"""Shapes are checked while the tests run, and only then."""

from hypothesis import settings
from jaxtyping import install_import_hook

# The rooms behind the front doors: `Task` and the settings refuse bad values in words of their own,
# and numba must see the compiled kernels as they are.
CHECKED = [
    "transduce.episodes.fitting",
    "transduce.episodes.sampler",
    "transduce.methods.adam",
    "transduce.methods.matching",
    "transduce.methods.prototypes",
    "transduce.mixtures",
    "transduce.report.illustrations",
    "transduce.simplex.grouping",
    "transduce.simplex.probabilities",
]
install_import_hook(CHECKED, "beartype.beartype")

# The first example of a test may compile a kernel: no deadline, and the same examples each time.
settings.register_profile("transduce", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("transduce")
