import numpy as np
import pytest

from benchmarks import trust_audits, trust_orders
from benchmarks.trust_sets import Batch


@pytest.fixture(scope="module")
def batch():
    """Labels whose probabilities are true: wrong as often as they say."""
    random = np.random.default_rng(0)
    rows = random.dirichlet(np.full(6, 0.2), 800).astype(np.float32)
    truth = np.array([random.choice(6, p=row / row.sum()) for row in rows.astype(float)])
    doubt = 1 - rows.max(1)
    return Batch(rows, np.full((800, 6), 1 / 6, np.float32), rows.argmax(1), truth, doubt)


def test_cleanlabs_scores_by_hand():
    rows, labels = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([0, 1])
    np.testing.assert_allclose(trust_orders.self_confidence(labels, rows), [0.7, 0.3])
    np.testing.assert_allclose(trust_orders.normalized_margin(labels, rows), [0.75, 0.35])
    entropy = -(rows * np.log(rows)).sum(1) / np.log(3) / [0.7, 0.3]
    weighted = trust_orders.confidence_weighted_entropy(labels, rows)
    np.testing.assert_allclose(weighted, np.log1p(entropy) / entropy)


def test_errors_found_first(batch):
    row = trust_orders.measure([batch])
    assert row["found"]["doubt"] == row["found"]["max probability"]
    first, second, third = row["found"]["doubt"]
    assert first < second < third
    assert abs(row["expected_wrong"] - row["wrong"]) < 40
    assert row["calibration_error"] < 5


def test_audits_hold_what_they_claim(batch, monkeypatch):
    monkeypatch.setattr(trust_audits, "AUDITS", 100)
    row = trust_audits.measure(batch, 100, seed=0)
    assert row["doubt"] == row["max_probability"]
    assert row["doubt"]["broken"] <= 0.12
    assert row["interval"]["doubt"]["coverage"] >= 0.88
    assert row["sets"]["lac"]["coverage"] >= 0.88
    assert row["sets"]["aps"]["coverage"] >= 0.88
