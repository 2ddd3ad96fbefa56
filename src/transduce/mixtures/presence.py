"""How many of the classes a batch holds, from uncertain counts, and what counts say of a class."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Float64, Int
from scipy.special import digamma, polygamma

LEAST_CONCENTRATION, MOST_CONCENTRATION = 1e-4, 20.0
STEPS = 20
ABSENT = 1e-9


def fit_concentration(
    mass: Float64[np.ndarray, " class"],
    present: Float64[np.ndarray, " class"],
    total: float,
    start: float,
) -> float:
    """The concentration eps of a Dirichlet-multinomial, by Minka's fixed point.

    Soft counts, spread thin over many names, look as if every class were present; so each count
    is weighed by the probability that its class has any image, and taken as n_k given that it has.

    Parameters
    ----------
    mass : array of shape (class,)
        n_k, the expected number of images of each class.
    present : array of shape (class,)
        r_k = 1 - prod_i (1 - z_ik), the probability that class k has any image.
    total : float
        The number of images.
    start : float
        Where to start; the last value, if there is one.
    """
    n_classes, concentration = len(mass), start
    likely = present[present > 0.0]  # the others add nothing
    given = np.where(likely > ABSENT, mass[present > 0.0] / np.maximum(likely, ABSENT), 1.0)
    expected = float(likely.sum())
    for _ in range(STEPS):
        gained = float(likely @ digamma(given + concentration)) - expected * digamma(concentration)
        whole = n_classes * concentration
        lost = n_classes * (digamma(total + whole) - digamma(whole)) + 1e-12
        found = float(concentration * gained / lost)
        concentration = min(max(found, LEAST_CONCENTRATION), MOST_CONCENTRATION)
    return concentration


@dataclass(frozen=True)
class PresencePrior:
    """What the counts of a batch say of a class: w log(n_k + eps), an image itself left out."""

    bias_variance: float
    concentration: float = 1.0
    mass: Float64[np.ndarray, " class"] = field(default_factory=lambda: np.zeros(0))

    def refitted(
        self,
        mass: Float64[np.ndarray, " class"],
        present: Float64[np.ndarray, " class"],
        total: float,
    ) -> "PresencePrior":
        """The prior fitted to new counts, from this one's concentration on."""
        concentration = fit_concentration(mass, present, total, self.concentration)
        return PresencePrior(self.bias_variance, concentration, mass)

    @property
    def weight(self) -> float:
        """w: the spread of log proportions against that of the encoder's own bias, 0 to 1."""
        spread = float(polygamma(1, self.concentration))
        return spread / (spread + self.bias_variance)

    def without_leaving_out(self) -> Float32[np.ndarray, " class"]:
        """Return w log(n_k + eps) of each class, for images that are not among the counts."""
        return np.float32(self.weight) * np.log(self._smoothed(self.mass.astype(np.float32)))

    def left_out(
        self, classes: Int[np.ndarray, " entry"], z: Float32[np.ndarray, " entry"]
    ) -> Float32[np.ndarray, " entry"]:
        """Return w log(n_k - z + eps) - w log(n_k + eps), for counted shares `z`."""
        mass = self.mass.astype(np.float32)[classes]
        others = self._smoothed(np.maximum(mass - z, np.float32(0.0)))
        return np.float32(self.weight) * (np.log(others) - np.log(self._smoothed(mass)))

    def _smoothed(self, counts: Float32[np.ndarray, " entry"]) -> Float32[np.ndarray, " entry"]:
        return counts + np.float32(self.concentration)
