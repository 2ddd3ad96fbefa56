"""On real images: training the keys pays, and the shots pay."""

import numpy as np
import pytest
from reference_data import load

from transduce import Task
from transduce.methods.linear_probe import LinearProbe
from transduce.methods.tip_adapter import TipAdapter, TipAdapterF


@pytest.mark.parametrize("features", ["whurs19_RN50", "whurs19_ViT-B-32"])
def test_trained_keys_beat_their_start_on_held_out_images(features):
    data = load(features)
    random = np.random.default_rng(0)
    members = [random.permutation(np.flatnonzero(data.labels == k)) for k in range(19)]
    shots = np.concatenate([rows[:16] for rows in members])
    held_out = np.concatenate([rows[16:] for rows in members])
    task = Task.from_embeddings(
        data.images[held_out],
        data.classes,
        support=data.images[shots],
        support_labels=data.labels[shots],
        space="embedding",
    )

    def accuracy(prediction):
        return np.mean(prediction.labels == data.labels[held_out])

    start, trained = TipAdapter().predict(task), TipAdapterF().predict(task)
    assert trained.trace.objective[-1] < 0.9 * trained.trace.objective[0]
    assert accuracy(trained) > accuracy(start) + 0.01
    zero_shot = np.mean(task.zero_shot.argmax(1) == data.labels[held_out])
    assert accuracy(start) > zero_shot
    assert accuracy(LinearProbe().predict(task)) > zero_shot  # 16 shots are enough for it
