"""The loop: statistics that add up, work that is skipped, blocks that do not show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce import METHODS
from transduce.benchmark.synthetic.simulated import simulate
from transduce.mixtures import components, expectation, queries, scores
from transduce.mixtures.dirichlet import Dirichlet
from transduce.mixtures.em import fit_mixture
from transduce.mixtures.family import Statistics
from transduce.mixtures.gaussian import Diagonal, Spherical
from transduce.mixtures.kl_centroid import KLCentroid
from transduce.mixtures.queries import ArrayQueries
from transduce.simplex import probabilities
from transduce.simplex.passes import chunks_of

FAMILIES = [Dirichlet(), Spherical(3.0), Diagonal(), KLCentroid()]


def statistics_of(family, rows, assignments):
    return Statistics(assignments.sum(0), assignments.T @ family.statistic(rows))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
@given(st.integers(0, 10**6), st.integers(0, 30))
def test_statistics_of_partitions_sum_to_the_whole(family, seed, cut):
    random = np.random.default_rng(seed)
    rows, assignments = random.dirichlet(np.ones(5), 30), random.dirichlet(np.ones(5), 30)
    whole = statistics_of(family, rows, assignments)
    parts = statistics_of(family, rows[:cut], assignments[:cut]) + statistics_of(
        family, rows[cut:], assignments[cut:]
    )
    assert parts.mass == pytest.approx(whole.mass)
    assert parts.total == pytest.approx(whole.total)
    fitted = family.maximize(whole, family.initial(5, 5))
    assert family.maximize(parts, family.initial(5, 5)) == pytest.approx(fitted, rel=1e-6)


def run(task, family, **settings):
    defaults = {"n_classes": task.n_classes, "hard": False, "weight": 3.0, "max_iter": 20}
    queries, start = ArrayQueries(task.query), ArrayQueries(task.zero_shot)
    return fit_mixture(queries, start, family, **(defaults | settings))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_blocks_answer_as_one(family, hard, monkeypatch):
    task = simulate(n_classes=12, n_queries=50, classes_present=5).task
    whole = run(task, family, hard=hard)
    monkeypatch.setattr(probabilities, "BLOCK_ENTRIES", 7 * 24)
    blocks = run(task, family, hard=hard)
    assert blocks.assignments == pytest.approx(whole.assignments, abs=1e-9)
    if not isinstance(family, Diagonal):  # whose clamped precisions of 1e15 leave few digits of it
        assert blocks.objective == pytest.approx(whole.objective)


@pytest.mark.parametrize("hard", [False, True])
def test_skipping_what_did_not_change_changes_nothing(hard, monkeypatch):
    task = simulate(n_classes=20, n_queries=60, classes_present=4).task
    quick = run(task, Dirichlet("mm"), hard=hard)

    def never(new, old):
        return np.zeros(len(new.mass), dtype=bool)

    monkeypatch.setattr(components, "_same", never)
    thorough = run(task, Dirichlet("mm"), hard=hard)
    assert (quick.assignments.argmax(1) == thorough.assignments.argmax(1)).all()
    assert quick.iterations < thorough.iterations == 20


def test_classes_that_fell_silent_are_not_fitted_again():
    fitted = []

    class Counting(Dirichlet):
        def maximize(self, statistics, previous):
            fitted.append(len(previous))
            return super().maximize(statistics, previous)

    task = simulate(n_classes=100, classes_present=5).task
    run(task, Counting(), hard=True, weight=20.0)
    assert fitted[0] == 100
    assert sum(fitted[1:]) < 150  # the 90 that emptied, once, and the others as they change


def test_convergence_is_told():
    task = simulate(n_classes=10, classes_present=3).task
    assert not run(task, Dirichlet(), max_iter=1).converged
    settled = run(task, Dirichlet(), max_iter=200)
    assert settled.converged
    assert settled.iterations < 200


def test_it_is_a_fixed_point_that_it_stops_at():
    task = simulate(n_classes=10, classes_present=3).task
    settled = run(task, Dirichlet(), max_iter=500)
    again = fit_mixture(
        ArrayQueries(task.query), ArrayQueries(settled.assignments), Dirichlet(),
        n_classes=10, hard=False, weight=3.0, max_iter=1,
    )  # fmt: skip
    assert again.assignments == pytest.approx(settled.assignments, abs=1e-6)


@pytest.mark.parametrize("name", ["em-dirichlet", "hard-em-dirichlet", "paddle"])
def test_single_precision_gives_the_labels_of_double(name):
    double = simulate(n_classes=40, shots=2, seed=5).task
    single = type(double)(
        query=double.query.astype(np.float32),
        zero_shot=double.zero_shot.astype(np.float32),
        support=double.support.astype(np.float32),
        support_labels=double.support_labels,
    )
    prediction = METHODS[name]().predict(single)
    assert prediction.probabilities.dtype == np.float32
    assert (prediction.labels == METHODS[name]().predict(double).labels).mean() > 0.98


@pytest.mark.parametrize("hard", [False, True])
def test_float32_says_who_competes_and_float64_by_how_much(hard, monkeypatch):
    task = simulate(n_classes=40, n_queries=300, classes_present=12, seed=4).task
    query = task.query.astype(np.float32)
    task = type(task)(query=query, zero_shot=query)
    double = run(task, Dirichlet(), hard=hard)
    monkeypatch.setattr(probabilities, "BLOCK_ENTRIES", 50 * 40)
    monkeypatch.setattr(expectation, "LARGE", 0)
    settled = []
    settle = scores._settle
    monkeypatch.setattr(scores, "_settle", lambda *given: settled.append(1) or settle(*given))
    for crowded in (1 / 2, 0.0):  # few compete, and too many for that to be worth it
        monkeypatch.setattr(scores, "CROWDED", crowded)
        single = run(task, Dirichlet(), hard=hard, single_products=True)
        np.testing.assert_array_equal(single.clusters, double.clusters)
        assert single.assignments == pytest.approx(double.assignments, abs=1e-5)
        assert single.objective[-1] == pytest.approx(double.objective[-1])
    assert settled


@pytest.mark.parametrize("name", ["em-dirichlet", "hard-em-dirichlet"])
def test_nothing_of_the_size_of_the_batch_need_be_kept(name, monkeypatch):
    task = simulate(n_classes=12, n_queries=50, classes_present=5).task
    hard = name.startswith("hard")
    kept = run(task, Dirichlet(), hard=hard)
    free = run(task, Dirichlet(), hard=hard, keep=False)
    assert free.assignments is None
    np.testing.assert_array_equal(free.clusters, kept.assignments.argmax(1))
    assert free.parameters == pytest.approx(kept.parameters)
    assert free.objective == pytest.approx(kept.objective)
    monkeypatch.setattr(queries, "chunks_of", lambda size: chunks_of(size, 9))
    chunks = run(task, Dirichlet(), hard=hard, keep=False)
    np.testing.assert_array_equal(chunks.clusters, free.clusters)
    assert chunks.objective == pytest.approx(free.objective)


class LastState:
    """What was kept, in memory; the loop goes on from one of these."""

    def __init__(self, begun=None):
        self.begun, self.kept = begun, []

    def last(self):
        return None if self.begun is None else {name: a.copy() for name, a in self.begun.items()}

    def keep(self, arrays):
        self.kept.append({name: array.copy() for name, array in arrays.items()})


@pytest.mark.parametrize("shots", [0, 2])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_a_stopped_loop_goes_on_to_the_same_bits(family, hard, shots):
    task = simulate(n_classes=12, n_queries=50, classes_present=5, shots=shots).task
    support = None
    if shots:
        support = components.PreparedSupport.solve(family, task.support, task.support_labels, 12)
    settings = {"hard": hard, "support": support, "keep": False, "max_iter": 6}
    states = LastState()
    whole = run(task, family, checkpoint=states, **settings)
    assert len(states.kept) == whole.iterations > 1
    for done, state in enumerate(states.kept):
        later = LastState(state)
        resumed = run(task, family, checkpoint=later, **settings)
        assert len(later.kept) == whole.iterations - done - 1
        assert (resumed.objective, resumed.converged) == (whole.objective, whole.converged)
        for name in ("clusters", "parameters", "log_prior"):
            np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
