"""The Dirichlet distribution: its density, and the fit of its parameters from mean logarithms.

A row of `mean_log` is sum_n u_n log z_n / sum_n u_n, all that the likelihood needs of the data.
Three solvers minimize the same F_k (equation 8 of the paper):

- `mm`: the paper's Algorithm 1, quadratic majorant, closed-form steps;
- `minka`: Minka's majorant, whose steps invert digamma; the paper's comparison;
- `fast`: the answer of `mm`, sooner. Where `mm` would have converged within its steps, Newton
  finds the same optimum in about eight; where it would not (a class with one image has an
  unbounded likelihood, and the step limit is what regularizes it), MM steps are taken, most of
  them by extrapolation.
"""

import threading
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from transduce.errors import InvalidSetting
from transduce.simplex.compiled import load_kernels
from transduce.simplex.threads import over_rows

Solver = Literal["fast", "mm", "minka"]

MOST_STEPS = 1000
TOLERANCE = 1e-11  # of the squared relative change of all parameters in one step
TEST_EVERY = 50  # steps


def check_solver(solver: str, steps: int) -> None:
    """Raise `InvalidSetting` for an unknown solver or a number of steps below 1."""
    if solver not in get_args(Solver):
        raise InvalidSetting(f"Expected solver to be one of {get_args(Solver)}, found {solver!r}.")
    if steps < 1:
        raise InvalidSetting(f"Expected at least 1 step of the solver, found {steps}.")


def fit(
    mean_log: Float[np.ndarray, "class feature"],
    start: Float[np.ndarray, "class feature"],
    *,
    solver: Solver = "fast",
    steps: int = MOST_STEPS,
    tolerance: float = TOLERANCE,
) -> Float[np.ndarray, "class feature"]:
    """Fit a Dirichlet to each row of mean logarithms.

    Parameters
    ----------
    mean_log : array of shape (class, feature)
        Weighted mean of log z in each class.
    start : array of shape (class, feature)
        First parameters, positive.
    solver : {"fast", "mm", "minka"}, default="fast"
        How to minimize; see the module.
    steps : int, default=1000
        Steps, at most.
    tolerance : float, default=1e-11
        Stops "mm" and "minka" before `steps`. It is tested over all rows together, as in the
        paper's experiments, so that one slow class keeps the others going.

    Returns
    -------
    array of shape (class, feature)
        The parameters alpha.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.simplex.dirichlet import fit
    >>> rows = np.random.default_rng(0).dirichlet([2, 3, 5], 20_000)
    >>> fit(np.log(rows).mean(0, keepdims=True), np.ones((1, 3))).round().tolist()
    [[2.0, 3.0, 5.0]]
    """
    kernels = load_kernels()
    check_solver(solver, steps)
    alpha = np.array(start, dtype=np.float64, order="C")
    mean_log = np.ascontiguousarray(mean_log, dtype=np.float64)
    if len(alpha) == 0:
        return alpha
    if solver == "fast":
        over_rows(lambda rows: kernels.fast_rows(mean_log[rows], alpha[rows], steps), *alpha.shape)
        return alpha
    step_rows = kernels.mm_rows if solver == "mm" else kernels.minka_rows
    for done in range(0, steps, TEST_EVERY):
        count = min(TEST_EVERY, steps - done)
        parts = over_rows(
            lambda rows, count=count: step_rows(mean_log[rows], alpha[rows], count),  # type: ignore[misc]
            *alpha.shape,
        )
        changed, size = np.sum(parts, axis=0)
        if changed < tolerance * size:
            break
    return alpha


def start_compiling() -> threading.Thread:
    """Begin to compile the loops of `fit`, which takes seconds at the first use, in a thread.

    Raises
    ------
    MissingExtra
        At once, if numba is not installed.
    """
    load_kernels()
    thread = threading.Thread(target=fit, args=(np.log(np.full((1, 2), 0.5)), np.ones((1, 2))))
    thread.daemon = True
    thread.start()
    return thread


def log_normalizer(alpha: Float[np.ndarray, "class feature"]) -> Float[np.ndarray, " class"]:
    """Return log B(alpha) of each class (class,), which makes its density integrate to one."""
    kernels = load_kernels()
    alpha = np.ascontiguousarray(alpha, dtype=np.float64)
    result = np.empty(len(alpha))
    over_rows(lambda rows: kernels.log_normalizer_rows(alpha[rows], result[rows]), *alpha.shape)
    return result


def log_density(
    log_rows: Float[np.ndarray, "query feature"], alpha: Float[np.ndarray, "class feature"]
) -> Float[np.ndarray, "query class"]:
    """Return log p(z | alpha) (query, class) of every query under every class (equation 3)."""
    return log_rows @ (alpha - 1.0).T - log_normalizer(alpha)
