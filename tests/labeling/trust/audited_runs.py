"""Runs with known truth and doubts, and audits of them answered by that truth."""

import numpy as np

from tests.labeling.report.small_runs import small_run

CLASSES = ("cat", "dog", "fox")


def run_with_doubts(folder, images=300, *, wrong_among_trusted=0.0, seed=0):
    """Two thirds of the labels are probable and right, the others often wrong; no pictures."""
    generator = np.random.default_rng(seed)
    trusted = 2 * images // 3
    score = generator.uniform(0.4, 0.6, images)
    score[:trusted] = generator.uniform(0.95, 1.0, trusted)
    score = np.sort(score)[::-1]
    label = generator.integers(3, size=images)
    rows = np.repeat(((1 - score) / 2)[:, np.newaxis], 3, axis=1)
    rows[np.arange(images), label] = score
    chance = np.where(score > 0.6, wrong_among_trusted, 0.6)
    wrong = generator.uniform(size=images) < chance
    truth = np.where(wrong, (label + 1) % 3, label)
    return small_run(
        folder,
        images=images,
        paths=["" for _ in range(images)],
        probabilities=rows,
        truth_indices=truth,
    )


def true_answers(run, audit):
    """What a careful person would say of the drawn images."""
    truth = dict(zip(run.labels.file_name, run.labels.truth, strict=True))
    return {name: CLASSES[truth[name]] for name in audit.file_names}
