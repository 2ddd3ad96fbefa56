import numpy as np
import pytest

from transduce.labeling.trust.doubt import LEAST, MOST, doubts, most_wrong, shifted

TOP = np.float32([[0.9, 0.05], [0.6, 0.3], [0.6, 0.1], [1.0, 0.0], [0.4, 0.4]])
LABELS = np.arange(5)
ALL_CLASSES, FEW_CLASSES = {"prior_weight": 0.0}, {"prior_weight": 1.0}


def evidence(neighbors, text, named=None):
    named = [9.0] * len(text) if named is None else named
    return {
        "neighbors": np.float32(neighbors),
        "text": np.float32(text),
        "named": np.float32(named),
    }


def test_the_mean_is_what_the_probabilities_leave():
    assert doubts(LABELS, TOP).mean() == pytest.approx(1 - TOP[:, 0].mean(), abs=1e-3)


def test_labels_far_ahead_and_likely_are_doubted_least():
    order = np.argsort(doubts(LABELS, TOP))
    assert order.tolist() == [3, 0, 2, 1, 4]


def test_the_lead_counts_where_few_classes_are_present_and_the_probability_where_all_are():
    top = np.float32([[0.5, 0.05], [0.6, 0.4]])
    ahead, likely = doubts(LABELS[:2], top, estimates=FEW_CLASSES)
    assert ahead < likely
    ahead, likely = doubts(LABELS[:2], top, estimates=ALL_CLASSES)
    assert ahead > likely


def test_alike_images_with_other_labels_raise_it():
    top, labels = np.float32([[0.8, 0.1]] * 9), np.zeros(9, int)
    doubt = doubts(labels, top, evidence([1, 0.2, *[1] * 7], [-0.1] * 9), ALL_CLASSES)
    assert doubt[1] > 2 * doubt[0]


def test_they_say_less_where_counts_made_the_labels():
    top, labels = np.float32([[0.8, 0.1]] * 9), np.zeros(9, int)
    near = evidence([1, 0.2, *[1] * 7], [-0.1] * 9)
    few = doubts(labels, top, near, FEW_CLASSES)
    every = doubts(labels, top, near, ALL_CLASSES)
    assert 0 < few[1] - few[0] < every[1] - every[0]


def test_where_no_image_has_neighbors_of_its_class_they_say_nothing():
    top, labels = np.float32([[0.8, 0.1]] * 10), np.arange(10)
    doubt = doubts(labels, top, evidence([0.0] * 9 + [0.3], [-0.1] * 10), ALL_CLASSES)
    np.testing.assert_allclose(doubt, doubt[0], rtol=1e-3)


def test_a_name_that_fits_a_group_as_well_raises_the_doubt_of_all_of_it():
    """For the images of class 1 the next name is as good as theirs; those of class 0 are clear."""
    top, labels = np.float32([[0.98, 0.01]] * 20), np.repeat([0, 1], 10)
    known = evidence([1] * 20, [-0.1] * 20, [4] * 10 + [0] * 10)
    doubt = doubts(labels, top, known, FEW_CLASSES)
    assert (doubt[10:] > 0.5).all()
    assert (doubt[:10] < 0.05).all()
    # Where all classes are present the next name has images of its own.
    every = doubts(labels, top, known, ALL_CLASSES)
    np.testing.assert_allclose(every, every[0], rtol=1e-3)


def test_a_name_that_is_known_to_be_right_raises_no_doubt():
    top, labels = np.float32([[0.98, 0.01]] * 2), np.array([0, 1])
    shown = doubts(labels, top, evidence([1, 1], [-0.1] * 2, [np.inf, 0.0]), FEW_CLASSES)
    assert shown[0] < 0.05 < 0.5 < shown[1]


def test_names_tell_the_likely_from_the_likelier():
    top, labels = np.float32([[0.8, 0.1]] * 2), np.array([0, 1])
    doubt = doubts(labels, top, evidence([1, 1], np.log([0.9, 0.99])), FEW_CLASSES)
    assert doubt[0] > 1.1 * doubt[1]


def test_any_evidence_gives_probabilities():
    extremes = evidence(
        [0, 1, 0, 1, 0], [0, -np.inf, -80, -1e-12, -0.7], [0, np.inf, -np.inf, -80, 80]
    )
    doubt = doubts(LABELS, TOP, extremes, {"prior_weight": 0.5})
    assert ((doubt > 0) & (doubt < 1)).all()


def test_nothing_is_certain():
    doubt = doubts(LABELS[:3], np.float32([[1, 0], [1, 0], [1, 0]]))
    assert (doubt >= LEAST / 2).all()
    assert (shifted(np.array([-500.0, 0.0, 500.0]), 0.5) <= MOST).all()


def test_one_image():
    assert doubts(LABELS[:1], np.float32([[0.7, 0.2]])) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("mean", [0.01, 0.2, 0.9])
def test_shifted_probabilities_have_the_mean_asked(mean):
    logits = np.random.default_rng(0).normal(-2, 2, 100)
    assert shifted(logits, mean).mean() == pytest.approx(mean, abs=1e-3)


def test_more_may_be_wrong_where_labels_are_wrong_in_groups():
    doubt, few, many = np.full(400, 0.02), np.repeat([0, 1], 200), np.arange(400)
    assert 8 < most_wrong(doubt, many) < most_wrong(doubt, few) < 100


def test_no_more_can_be_wrong_than_there_are():
    assert most_wrong(np.full(3, 0.9), np.zeros(3, int)) == 3
    assert most_wrong(np.zeros(0), np.zeros(0, int)) == 0
    assert most_wrong(np.zeros(5), np.arange(5)) == 0


def test_most_wrong_holds_in_19_of_20_batches_of_such_groups():
    """Groups are wrong as a whole or not at all, and batches more or less often than they say."""
    random, labels, doubt = (
        np.random.default_rng(0),
        np.repeat(np.arange(20), 20),
        np.full(400, 0.05),
    )
    rates = np.minimum(0.05 * random.gamma(1.0, 1.0, 400), 1.0)
    wrong = 20 * random.binomial(20, rates)
    assert 0.9 <= (wrong <= most_wrong(doubt, labels)).mean() <= 0.99
