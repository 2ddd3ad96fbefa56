"""`TransductiveClassifier`: the methods as one scikit-learn estimator (extra `sklearn`).

`fit(X, y)` takes all images at once, with y = -1 for those to be labeled, and labels them jointly;
`predict` then answers for new images, one by one, with the classes as they were fitted.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transduce.errors import InvalidSetting, InvalidTask, MissingExtra
from transduce.methods import METHODS, Method
from transduce.methods.anchored import Anchored
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.prototypes import class_means, directions
from transduce.task import Prediction, Space, Task
from transduce.validation import same_length, same_width, unit_rows

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, unique_labels
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("TransductiveClassifier", "sklearn") from None

UNLABELED = -1


def _takes_later_rows(estimator: "TransductiveClassifier") -> bool:
    return isinstance(estimator._method(), Anchored)


class TransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Label images jointly from their CLIP embeddings, in the manner of scikit-learn.

    If every row is labeled, the classes are fitted to them alone and nothing is transduced.

    Parameters
    ----------
    class_embeddings : array of shape (class, feature), optional
        The encoder's text embedding of each class. Without them, the means of the labeled images
        stand in, and every class needs labeled images.
    classes : sequence, optional
        The label of each row of `class_embeddings`; 0, 1, ... if not given.
    method : str or Method, default="auto"
        A name from `transduce.METHODS`, or a method with its settings. "auto" is `Anchored`.
    temperature : float, default=30.0
        T of softmax(T cos); see `Task`. Also the scale at which "auto" takes the means that stand
        in for class names: they are made of the labeled images, so that they say less than names.
    space : {"probability", "embedding"} or None, default=None
        The features the method works on; None: the space it names first.

    Attributes
    ----------
    classes_ : array of shape (class,)
        The labels, in the order of the columns below.
    transduction_ : array of shape (row,)
        The label of every fitted row: the given one where there was one.
    label_distributions_ : array of shape (row, class)
        Class probabilities of every fitted row; rows that came labeled are one-hot.
    n_iter_ : int
        Iterations of the method.
    prediction_ : Prediction
        The method's own answer for the rows that were to be labeled.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import TransductiveClassifier
    >>> texts = np.eye(3)
    >>> images = texts[[0, 1, 2, 0, 1, 2]] + 0.1
    >>> model = TransductiveClassifier(texts, classes=["cat", "dog", "fox"])
    >>> model.fit(images, [-1] * 6).transduction_.tolist()
    ['cat', 'dog', 'fox', 'cat', 'dog', 'fox']
    >>> model.predict(texts[:1]).tolist()
    ['cat']
    """

    def __init__(
        self,
        class_embeddings: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        method: str | Method = "auto",
        temperature: float = 30.0,
        space: Space | None = None,
    ) -> None:
        self.class_embeddings = class_embeddings
        self.classes = classes
        self.method = method
        self.temperature = temperature
        self.space = space

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        view: ArrayLike | None = None,
    ) -> "TransductiveClassifier":
        """Label all rows jointly.

        Parameters
        ----------
        X : array of shape (row, feature)
            Image embeddings of one encoder.
        y : array of shape (row,)
            The label of each row; -1 for those to be labeled.
        view : array of shape (row, view feature), optional
            The same images by another encoder, by which they are compared; see `Task`. `predict`
            then needs a view, too.

        Returns
        -------
        TransductiveClassifier
            This object, fitted.
        """
        rows, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        known = ~_unlabeled(labels)
        self.classes_ = self._classes(labels[known])
        if len(self.classes_) < 2:
            raise InvalidTask(
                f"Expected at least 2 classes, found 1 class in y; {UNLABELED} means unlabeled."
            )
        indices = _class_indices(labels[known], self.classes_)
        method = self._method()
        # With nothing to label, the labeled rows themselves show how the classes lie.
        asked = ~known if not known.all() else known
        shots = known.any() and method.support != "unused"
        seen = self._view(view, rows, method)
        self.task_ = Task.from_embeddings(
            rows[asked],
            self._class_embeddings(rows[known], indices),
            support=rows[known] if shots else None,
            support_labels=indices if shots else None,
            view=None if seen is None else seen[asked],
            support_view=seen[known] if seen is not None and shots else None,
            temperature=self.temperature,
            space=self.space or method.spaces[0],
            partial_support=self.class_embeddings is not None,
        )
        self.method_ = method
        self.prediction_: Prediction = method.predict(self.task_)
        self._keep(rows, known, indices)
        return self

    @available_if(_takes_later_rows)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        view: ArrayLike | None = None,
    ) -> "TransductiveClassifier":
        """Label images that came later, with what was learned of those before; "auto" only.

        The new rows are labeled jointly with up to 2,048 earlier ones, the others standing by with
        the labels they got (`Anchored.carry_on`). `transduction_`, `label_distributions_` and
        `prediction_` are of the new rows then, and `drift_` says how they differ from those before.
        The first call is `fit`.

        Parameters
        ----------
        X : array of shape (row, feature)
            The new images, by the same encoder.
        y : array of shape (row,), optional
            The label of each row; -1, or no `y` at all, for those to be labeled.
        classes : sequence, optional
            For scikit-learn's sake: must hold no label but those of the first call.
        view : array of shape (row, view feature), optional
            The same images by the other encoder, if there was one in `fit`.

        Returns
        -------
        TransductiveClassifier
            This object, which has learned of the new rows.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import TransductiveClassifier
        >>> texts, random = np.eye(3), np.random.default_rng(0)
        >>> images = texts[[0, 1, 2] * 10] + random.normal(0, 0.1, (30, 3))
        >>> model = TransductiveClassifier(texts, classes=["cat", "dog", "fox"])
        >>> model.partial_fit(images[:27]).partial_fit(images[27:]).transduction_.tolist()
        ['cat', 'dog', 'fox']
        """
        labels = np.full(len(np.asarray(X)), UNLABELED) if y is None else np.asarray(y)
        if not hasattr(self, "prediction_"):
            self.fit(X, labels, view)
            _class_indices(np.asarray([] if classes is None else classes), self.classes_)
            return self
        learned = self.prediction_.model
        assert isinstance(self.method_, Anchored)
        assert isinstance(learned, AnchoredModel)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        same_length("y", labels, "X", rows)
        seen = self._view_as_fitted(view, rows, "partial_fit")
        known = ~_unlabeled(labels)
        asked = ~known if not known.all() else known
        indices = _class_indices(labels[known], self.classes_)
        shots = bool(known.any())
        answer = self.method_.carry_on(
            learned,
            rows[asked],
            None if seen is None else seen[asked],
            support=rows[known] if shots else None,
            support_labels=indices if shots else None,
            support_view=seen[known] if shots and seen is not None else None,
        )
        self.drift_ = answer.drift
        self.prediction_ = Prediction(
            probabilities=answer.dense(rows.dtype),
            trace=answer.trace,
            model=answer.model,
            evidence=answer.evidence,
        )
        self._keep(rows, known, indices)
        return self

    def _keep(self, rows: np.ndarray, known: np.ndarray, indices: np.ndarray) -> None:
        """Set what scikit-learn's users read, from the prediction for the unlabeled rows."""
        self.n_iter_ = self.prediction_.trace.iterations
        self.label_distributions_ = np.zeros((len(rows), len(self.classes_)), dtype=rows.dtype)
        self.label_distributions_[~known] = self.prediction_.probabilities[: (~known).sum()]
        self.label_distributions_[np.flatnonzero(known), indices] = 1.0
        transduced = np.empty(len(rows), dtype=np.int64)
        transduced[~known] = self.prediction_.labels[: (~known).sum()]
        transduced[known] = indices
        self.transduction_ = self.classes_[transduced]

    def _method(self) -> Method:
        if not isinstance(self.method, str):
            return self.method
        method = METHODS[self.method]
        if method is Anchored and self.class_embeddings is None:
            return Anchored(text_scale=self.temperature, names_foretell_means=False)
        return method()

    def predict_proba(
        self,
        X: ArrayLike,  # noqa: N803
        view: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return class probabilities (row, class) of new images, each by itself.

        `view` is the same images by the other encoder, if there was one in `fit`.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        seen = self._view_as_fitted(view, rows, "predict")
        if self.prediction_.model is None and self.method_.inductive:
            return self.method_.predict(self._like_fitted(rows)).probabilities
        if self.prediction_.model is None:
            raise InvalidSetting(
                f"Expected a method that can label new images, found {self.method_.name}, which "
                "only labels the batch it was fitted on; read transduction_, or fit again."
            )
        query = self._like_fitted(rows).query
        if seen is None:
            return self.prediction_.model.probabilities(query)
        return self.prediction_.model.probabilities(query, seen)  # type: ignore[call-arg]

    def predict(
        self,
        X: ArrayLike,  # noqa: N803
        view: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return labels (row,) of new images, each by itself; `view` as in `predict_proba`.

        `transduction_` has the labels of the fitted batch.
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X, view).argmax(1)]

    def _view_as_fitted(
        self, view: ArrayLike | None, rows: np.ndarray, verb: str
    ) -> np.ndarray | None:
        """The checked view of new rows; refused unless it is like that of `fit`."""
        if (view is None) != (self.task_.view is None):
            given = "none" if view is None else "one"
            raise InvalidTask(
                f"Expected a view in `{verb}` just if there was one in `fit`, found {given}; "
                "give the new images as the same two encoders see them."
            )
        seen = self._view(view, rows, self.method_)
        if seen is not None and self.task_.view is not None:
            same_width("view", seen, "the view of `fit`", self.task_.view)
        return seen

    def _view(self, view: ArrayLike | None, rows: np.ndarray, method: Method) -> np.ndarray | None:
        """The checked view of these rows; refused for a method that does not look at one."""
        if view is None:
            return None
        if not getattr(method, "uses_view", False):
            raise InvalidSetting(
                f"Expected a method that looks at a view, such as 'auto', found {method.name}; "
                "leave the view out."
            )
        seen = unit_rows("view", view)
        same_length("view", seen, "X", rows)
        return seen

    def _like_fitted(self, rows: np.ndarray) -> Task:
        """New rows as queries of the fitted task."""
        assert self.task_.class_embeddings is not None
        task = Task.from_embeddings(
            rows,
            self.task_.class_embeddings,
            temperature=self.temperature,
            space=self.task_.space,
        )
        return replace(
            task,
            support=self.task_.support,
            support_labels=self.task_.support_labels,
            partial_support=self.task_.partial_support,
        )

    def _classes(self, labels: np.ndarray) -> np.ndarray:
        if self.classes is not None:
            return np.asarray(self.classes)
        if self.class_embeddings is not None:
            return np.arange(len(np.asarray(self.class_embeddings)))
        if len(labels) == 0:
            raise InvalidTask(
                "Expected class_embeddings or labeled rows, found neither; give class_embeddings "
                "to label images without any label."
            )
        return np.asarray(unique_labels(labels))

    def _class_embeddings(self, shots: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if self.class_embeddings is not None:
            return np.asarray(self.class_embeddings)
        return class_means(directions(shots), indices, len(self.classes_))


def _unlabeled(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind in "OUS":  # numpy turns a -1 among names into text
        return np.array([str(label) == str(UNLABELED) for label in labels])
    return labels == UNLABELED


def _class_indices(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    index_of: dict[Any, int] = {label: i for i, label in enumerate(classes.tolist())}
    strange = sorted({str(label) for label in labels.tolist() if label not in index_of})
    if strange:
        raise InvalidTask(
            f"Expected y to hold {UNLABELED} or one of {len(classes)} classes, found "
            f"{', '.join(strange[:5])}; give `classes`, one label for each row of class_embeddings."
        )
    return np.array([index_of[label] for label in labels.tolist()], dtype=np.int64)
