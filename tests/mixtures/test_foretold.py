"""Means foretold from names, against the formulas of a Gaussian process written out."""

import numpy as np
import pytest

from transduce.mixtures import foretold
from transduce.mixtures.foretold import FEWEST_IMAGES, LEAST_SPREAD, NAME_SHARES, means_from_names


def classes(seed, count, width=12):
    """Sums, counts and names of classes whose means lie where their names say, more or less."""
    random = np.random.default_rng(seed)
    names = random.normal(size=(count, width))
    names = (names / np.linalg.norm(names, axis=1, keepdims=True)).astype(np.float32)
    means = names @ random.normal(size=(width, 20)) + 0.5 * random.normal(size=(count, 20))
    mass = random.uniform(0, 6, count)
    return (means * mass[:, np.newaxis]).astype(np.float32), mass, names


def written_out(sums, mass, within, spread, names):
    """The same by one inverse for every class, with that class left out."""
    seen = mass > FEWEST_IMAGES
    means, noise = sums[seen] / mass[seen, np.newaxis], within / mass[seen]
    best = None
    for rho in NAME_SHARES:
        prior = spread * (rho * (names @ names.T).astype(float) + (1 - rho) * np.eye(len(names)))
        prior[np.diag_indices(len(names))] = spread
        foretold_means, variances, fit = np.zeros(sums.shape), np.zeros(len(mass)), 0.0
        for k in range(len(mass)):
            others = seen.copy()
            others[k] = False
            seen_others = others[seen]
            covariance = prior[np.ix_(others, others)] + np.diag(noise[seen_others])
            gain = prior[k, others] @ np.linalg.inv(covariance)
            foretold_means[k] = gain @ means[seen_others]
            variances[k] = spread - gain @ prior[others, k]
            if seen[k]:
                at = seen[:k].sum()
                whole = variances[k] + noise[at]
                miss = ((means[at] - foretold_means[k]) ** 2).sum() / whole
                fit -= min(mass[k], 1) * (np.log(whole) + miss)
        if best is None or fit > best[0]:
            best = fit, foretold_means, variances
    return best[1], np.maximum(best[2], LEAST_SPREAD * spread)


@pytest.mark.parametrize("count", [3, 9, 40], ids=["few", "some", "more than features"])
@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_the_process_written_out(seed, count):
    sums, mass, names = classes(seed, count)
    means, variances = means_from_names(sums, mass, 4.0, 9.0, names)
    expected_means, expected_variances = written_out(sums, mass, 4.0, 9.0, names)
    np.testing.assert_allclose(means, expected_means, atol=2e-3)
    np.testing.assert_allclose(variances, expected_variances, rtol=1e-3)


def test_many_classes_choose_their_share_on_those_of_the_most_images(monkeypatch):
    sums, mass, names = classes(0, 60)
    everything = means_from_names(sums, mass, 4.0, 9.0, names)
    monkeypatch.setattr(foretold, "MOST_COMPARED", 30)
    part = means_from_names(sums, mass, 4.0, 9.0, names)
    assert np.corrcoef(part[0].ravel(), everything[0].ravel())[0, 1] > 0.95
