import numpy as np

from transduce.labeling.doubt import doubts


def test_without_evidence_it_is_what_the_score_leaves():
    np.testing.assert_allclose(doubts(np.float32([0.9, 0.5])), [0.1, 0.5], atol=1e-6)


def test_evidence_decides_which_labels_are_doubted():
    score = np.float32([0.9, 0.5, 0.7])
    evidence = {"margin": np.float32([1, 9, 5]), "text": np.float32([-6, -0.1, -1])}
    doubt = doubts(score, evidence)
    assert doubt.argmax() == 0
    assert doubt.argmin() == 1
