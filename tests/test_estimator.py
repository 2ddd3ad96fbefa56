"""The scikit-learn face: its own checks, and the promises beyond them."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import transduce
from transduce import METHODS, Anchored, InvalidSetting, InvalidTask, Prediction, Task, Trace
from transduce.benchmark.synthetic.simulated import simulate
from transduce.estimator import TransductiveClassifier
from transduce.methods.bd_cspn import BDCSPN

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

EXPECTED_FAILURES = {
    "check_estimators_dtypes": "has a row of zeros, which is no embedding and is refused",
    "check_classifiers_classes": "uses -1 as a class, which means unlabeled here",
}


@parametrize_with_checks(
    [TransductiveClassifier(), TransductiveClassifier(method="laplacian-shot")],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def batch():
    simulated = simulate(n_classes=20, classes_present=5, space="embedding", seed=1)
    return simulated.task.query, simulated.task.class_embeddings, simulated.labels


def simulated_shots(seed):
    simulated = simulate(n_classes=20, classes_present=5, shots=3, space="embedding", seed=seed)
    task = simulated.task
    rows = np.concatenate([task.support, task.query])
    truth = np.concatenate([task.support_labels, simulated.labels])
    given = truth.copy()
    given[len(task.support) :] = -1
    return rows, task.class_embeddings, given, truth


@pytest.fixture(scope="module")
def shots():
    return simulated_shots(seed=1)


def test_all_unlabeled_is_zero_shot_and_answers_like_the_method(batch):
    images, classes, _ = batch
    fitted = TransductiveClassifier(classes).fit(images, np.full(len(images), -1))
    task = Task.from_embeddings(images, classes, space="embedding")
    direct = METHODS["auto"]().predict(task)
    np.testing.assert_array_equal(fitted.transduction_, direct.labels)
    np.testing.assert_array_equal(fitted.label_distributions_, direct.probabilities)
    np.testing.assert_array_equal(fitted.classes_, np.arange(20))
    assert fitted.n_iter_ == direct.trace.iterations


def test_labeled_rows_are_shots_and_keep_their_label():
    right = []
    for seed in range(8):  # one draw of three shots a class says little
        rows, classes, given, truth = simulated_shots(seed)
        fitted = TransductiveClassifier(classes).fit(rows, given)
        known = given != -1
        np.testing.assert_array_equal(fitted.transduction_[known], given[known])
        np.testing.assert_array_equal(fitted.label_distributions_[known], np.eye(20)[given[known]])
        right.append(np.mean(fitted.transduction_[~known] == truth[~known]))
    assert np.mean(right) > 0.8


@pytest.mark.parametrize("method", [name for name in METHODS if name != "coop"])
def test_every_method_labels_new_images_one_by_one(shots, method):
    rows, classes, given, _ = shots
    fitted = TransductiveClassifier(classes, method=method).fit(rows, given)
    new = rows[given == -1]
    together = fitted.predict_proba(new)
    np.testing.assert_allclose(together.sum(1), 1.0, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(new[4:5]), together[4:5], atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(new), together.argmax(1))


def test_names_may_stand_for_numbers(shots):
    rows, classes, given, _ = shots
    names = np.array([f"kind {k}" for k in range(20)])
    named = np.where(given == -1, "-1", names[given])
    by_name = TransductiveClassifier(classes, classes=names).fit(rows, named)
    by_number = TransductiveClassifier(classes).fit(rows, given)
    np.testing.assert_array_equal(by_name.transduction_, names[by_number.transduction_])
    with pytest.raises(InvalidTask, match="one of 20 classes, found kind 20; give `classes`"):
        TransductiveClassifier(classes, classes=names).fit(
            rows, np.where(named == "-1", "kind 20", named)
        )


def test_works_in_a_pipeline_with_cross_validation_and_search(shots):
    rows, classes, given, truth = shots
    labeled = given != -1
    pipeline = make_pipeline(Normalizer(), TransductiveClassifier(classes, method="bd-cspn"))
    scores = cross_val_score(pipeline, rows[labeled], truth[labeled], cv=3)
    assert scores.mean() > 0.5
    grid = {"method": [BDCSPN(temperature=t) for t in BDCSPN.grid["temperature"][:3]]}
    search = GridSearchCV(TransductiveClassifier(classes), grid, cv=3)
    search.fit(rows[labeled], truth[labeled])
    assert search.best_params_["method"] in grid["method"]


def test_nothing_to_go_by_is_refused(batch):
    images, classes, _ = batch
    with pytest.raises(InvalidTask, match="Expected class_embeddings or labeled rows"):
        TransductiveClassifier().fit(images, np.full(len(images), -1))
    with pytest.raises(transduce.UnknownName, match="did you mean 'em-dirichlet'"):
        TransductiveClassifier(classes, method="em-dirichelt").fit(images, np.full(75, -1))


class BatchOnly:
    """A method that keeps nothing for new images."""

    name, spaces, support, inductive, grid = "batch-only", ("probability",), "unused", False, {}

    def predict(self, task):
        return Prediction(task.zero_shot.copy(), Trace((), 0, True))


def test_a_method_without_a_model_cannot_label_new_images(batch):
    images, classes, _ = batch
    fitted = TransductiveClassifier(classes, method=BatchOnly()).fit(images, np.full(75, -1))
    with pytest.raises(InvalidSetting, match="found batch-only, which only labels the batch"):
        fitted.predict(images)


def test_is_reached_from_the_package_without_slowing_its_import():
    assert transduce.TransductiveClassifier is TransductiveClassifier
    with pytest.raises(AttributeError, match=r"attribute '?TransductiveRegressor"):
        _ = transduce.TransductiveRegressor
    code = "import transduce, sys; assert not {'sklearn', 'torch', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ninety_labels_of_real_features_beat_logistic_regression():
    """The default with nothing but 90 random labels, accuracy on the other 915 images."""
    from sklearn.linear_model import LogisticRegression

    from tests.references.reference_data import load

    features = load("whurs19_ViT-B-32")
    with_means, with_names, regression = [], [], []
    for seed in range(3):
        labeled = np.random.default_rng(seed).permutation(1005)[:90]
        given = np.full(1005, -1)
        given[labeled] = features.labels[labeled]
        others = given == -1
        truth = features.labels[others]
        model = TransductiveClassifier().fit(features.images, given)
        with_means.append((model.transduction_[others] == truth).mean())
        model = TransductiveClassifier(features.classes).fit(features.images, given)
        with_names.append((model.transduction_[others] == truth).mean())
        baseline = LogisticRegression(C=100, max_iter=2000)
        baseline.fit(features.images[labeled], given[labeled])
        regression.append((baseline.predict(features.images[others]) == truth).mean())
    assert min(with_means) > 0.94
    assert np.mean(with_means) >= 0.945
    assert min(with_names) >= 0.945
    assert np.mean(with_means) > np.mean(regression) + 0.02


def test_a_view_is_used_in_fit_and_predict(shots):
    rows, classes, given, truth = shots
    random = np.random.default_rng(0)
    view = np.eye(20)[truth] + 0.1 * random.normal(size=(len(truth), 20))
    blurred = rows + 0.3 * random.normal(size=rows.shape)
    asked = given == -1
    model = TransductiveClassifier(classes, method="auto")
    alone = (model.fit(blurred, given).transduction_ == truth)[asked].mean()
    fitted = model.fit(blurred, given, view=view)
    assert (fitted.transduction_ == truth)[asked].mean() > alone
    direct = METHODS["anchored"]().predict(
        Task.from_embeddings(
            blurred[asked],
            classes,
            support=blurred[~asked],
            support_labels=given[~asked],
            view=view[asked],
            support_view=view[~asked],
            space="embedding",
        )
    )
    np.testing.assert_array_equal(fitted.transduction_[asked], direct.labels)
    assert (fitted.predict(blurred, view) == truth).mean() > alone
    with pytest.raises(InvalidTask, match="view in `predict` just if there was one in `fit`"):
        fitted.predict(blurred)
    with pytest.raises(InvalidTask, match="the view of `fit`"):
        fitted.predict(blurred, view[:, :5])
    with pytest.raises(InvalidTask, match="just if there was one in `fit`, found one"):
        model.fit(blurred, given).predict(blurred, view)
    with pytest.raises(InvalidTask, match="view"):
        model.fit(blurred, given, view=view[:-1])


def test_methods_that_do_not_look_at_a_view_refuse_it(batch):
    images, classes, _ = batch
    model = TransductiveClassifier(classes, method="em-dirichlet")
    with pytest.raises(InvalidSetting, match="looks at a view, such as 'auto', found em-dirichlet"):
        model.fit(images, np.full(len(images), -1), view=images)


def test_new_images_are_labeled_after_shots_of_some_classes(shots):
    rows, classes, given, _ = shots
    some = np.where(given < 3, given, -1)
    fitted = TransductiveClassifier(classes).fit(rows, some)
    assert fitted.predict(rows[:4]).shape == (4,)


def test_later_rows_join_what_was_fitted():
    random, texts = np.random.default_rng(0), np.eye(12)
    truth = random.integers(0, 4, 120)
    images = texts[truth] + random.normal(0, 0.25, (120, 12))
    model = TransductiveClassifier(texts, method=Anchored(text_scale=10))
    model.partial_fit(images[:100])
    labels = np.full(20, -1)
    labels[:2] = truth[100:102]
    model.partial_fit(images[100:], labels)
    assert model.prediction_.model.past.images == 118
    assert model.prediction_.model.past.rows == 2  # the shots; images are remembered
    assert (model.transduction_ == truth[100:]).mean() >= 0.9
    assert model.drift_.appeared == {}
    assert len(model.predict(images[:5])) == 5
    with pytest.raises(InvalidTask, match="Expected a view"):
        model.partial_fit(images[:2], view=images[:2])
    assert not hasattr(TransductiveClassifier(texts, method="zero-shot"), "partial_fit")
