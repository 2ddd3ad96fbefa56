"""One step of each relative against scikit-learn, and Proposition 1 against a direct EM."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from transduce import METHODS
from transduce.benchmark.synthetic.simulated import simulate
from transduce.mixtures.em import fit_mixture
from transduce.mixtures.gaussian import Diagonal, Spherical
from transduce.mixtures.queries import ArrayQueries
from transduce.simplex import dirichlet

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def batch():
    return simulate(n_classes=6, n_queries=90, classes_present=6, seed=2).task


def step(task, family, **settings):
    queries, start = ArrayQueries(task.query), ArrayQueries(task.zero_shot)
    return fit_mixture(queries, start, family, n_classes=task.n_classes, max_iter=1, **settings)


def test_a_hard_k_means_step_is_scikit_learns():
    task = batch()
    first = step(task, Spherical(empty="origin"), hard=True, weight=0.0)
    model = KMeans(6, init=first.parameters, n_init=1, max_iter=1).fit(task.query)
    ours = fit_mixture(
        ArrayQueries(task.query), ArrayQueries(first.assignments), Spherical(empty="origin"),
        n_classes=6, hard=True, weight=0.0, max_iter=1,
    )  # fmt: skip
    assert ours.parameters == pytest.approx(model.cluster_centers_)


def test_a_diagonal_gaussian_step_is_scikit_learns():
    task = batch()
    model = GaussianMixture(6, covariance_type="diag", reg_covar=0.0)
    model._initialize(task.query, task.zero_shot)  # the M-step from given responsibilities
    log_responsibilities = model._estimate_log_prob_resp(task.query)[1]
    ours = step(task, Diagonal(), hard=False, weight=1.0)
    assert ours.parameters[:, :6] == pytest.approx(model.means_)
    assert ours.parameters[:, 6:] == pytest.approx(1 / model.covariances_)
    assert ours.assignments == pytest.approx(np.exp(log_responsibilities), abs=1e-9)


def test_proposition_1_with_weight_1_it_is_em_of_the_mixture():
    task = batch()
    log_rows, u = np.log(task.query + 1e-15), task.zero_shot
    likelihoods = []
    for _ in range(8):
        pi = u.mean(0)
        mean_log = (u.T @ log_rows) / u.sum(0)[:, None]
        alpha = dirichlet.fit(mean_log, np.ones_like(mean_log))
        joint = (
            np.log(pi) + log_rows @ (alpha - 1).T + gammaln(alpha.sum(1)) - gammaln(alpha).sum(1)
        )
        likelihoods.append(logsumexp(joint, axis=1).sum())
        u = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    method = METHODS["em-dirichlet"](classes_present="all", max_iter=8, matching="none")
    prediction = method.predict(task)
    assert prediction.probabilities == pytest.approx(u, abs=1e-7)
    assert (np.diff(likelihoods) >= -1e-9).all()
