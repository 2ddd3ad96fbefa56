import numpy as np
import pytest
from rival_tasks import FEW, SMALL, accuracy, clip_like, directed_graph, text_guess

from transduce import ConvergenceWarning, InvalidSetting, Task, ZeroShot, ZLaP


def normalized_graph(task):
    """S of the graph of names and images, entry by entry, and its degrees."""
    n_classes, n_nodes = task.n_classes, task.n_classes + task.n_queries
    links = np.zeros((n_nodes, n_nodes))
    links[n_classes:, n_classes:] = directed_graph(task.query, task.query, 5, skip_self=True)
    to_names = directed_graph(task.query, task.class_embeddings, 5, skip_self=False)
    links[n_classes:, :n_classes] = to_names**5
    both = links + links.T
    degrees = both.sum(1)
    flow = np.zeros_like(both)
    for i in range(n_nodes):
        for j in range(n_nodes):
            if both[i, j] > 0:
                flow[i, j] = both[i, j] / np.sqrt(degrees[i] * degrees[j])
    return flow, degrees


def test_scores_solve_the_linear_system():
    task, _ = clip_like(**SMALL)
    flow, _ = normalized_graph(task)
    solution = np.linalg.solve(np.eye(len(flow)) - 0.3 * flow, np.eye(len(flow), 4))
    prediction = ZLaP(tolerance=1e-8).predict(task)
    expected = solution[4:] / solution[4:].sum(1, keepdims=True)
    np.testing.assert_allclose(prediction.probabilities, expected, atol=1e-6)
    assert prediction.trace.converged
    assert prediction.trace.iterations < 25
    minimum = 0.5 * np.sum(solution * ((np.eye(len(flow)) - 0.3 * flow) @ solution))
    minimum -= np.trace(solution[:4])
    assert prediction.trace.objective[-1] == pytest.approx(minimum)


def test_objective_never_increases():
    task, _ = clip_like(**FEW)
    objective = np.array(ZLaP().predict(task).trace.objective)
    assert (np.diff(objective) <= 1e-12 * np.abs(objective[:-1])).all()


def test_new_image_takes_one_more_step():
    task, _ = clip_like(**SMALL)
    flow, degrees = normalized_graph(task)
    solution = np.linalg.solve(np.eye(len(flow)) - 0.3 * flow, np.eye(len(flow), 4))
    other, _ = clip_like(**SMALL, seed=1)
    new = other.query[:2]
    to_names = directed_graph(new, task.class_embeddings, 5, skip_self=False) ** 5
    to_images = directed_graph(new, task.query, 5, skip_self=False)
    weights = np.concatenate([to_names, to_images], axis=1)
    expected = (weights / np.sqrt(degrees)) @ solution
    expected /= expected.sum(1, keepdims=True)
    answer = ZLaP().predict(task).model.probabilities(new)
    np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_gains_where_all_classes_are_present_and_loses_where_few_are():
    assert accuracy(ZLaP()) > accuracy(ZeroShot()) + 0.01
    assert accuracy(ZLaP(), **FEW) < accuracy(ZeroShot(), **FEW) - 0.05


def test_images_that_no_name_reaches_keep_the_guess_of_the_encoder():
    rows = np.array([[-1.0, -1.0, 0.1], [0.0, 1.0, 0.0], [0.1, 1.0, 0.0]])
    task = Task.from_embeddings(rows, np.eye(2, 3), space="embedding")
    answer = ZLaP(neighbors=1).predict(task).probabilities
    np.testing.assert_allclose(answer[0], text_guess(task)[0], atol=1e-12)
    assert answer[1:].argmax(1).tolist() == [1, 1]


def test_unsettled_scores_are_told():
    task, _ = clip_like(**SMALL)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ZLaP(max_iter=1).predict(task)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("propagation", 1.0), ("propagation", -0.1), ("neighbors", 0), ("text_power", 0.0)],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        ZLaP(**{setting: value})
