"""Anchored: a text-anchored collapsed mixture, the library's own method and its default.

Published here; the fit of class counts is Minka, "Estimating a Dirichlet distribution", 2000.
Every image i gets a score for every class k, and z_i = softmax(score_i):

    score_ik = L_ik + w [ log(n^-i_k + eps) + v (A z)_ik ] + h l_ik

`^-i` means that image i is left out of whatever describes class k to it.

- L_ik = 100 cos(x_i, t_k), what the encoder says of the image alone. It keeps weight 1, whatever
  the batch says: the names stay what the classes are.
- n_k = sum_i z_ik is how many images class k has. eps is the concentration of a
  Dirichlet-multinomial fitted to these counts: small if few of the classes are present.
- w = psi'(eps) / (psi'(eps) + 3) is how much the counts may say: the spread of log proportions
  under Dirichlet(eps), against the spread of the encoder's own bias between classes. Near 1 if few
  classes are present; near 0 if all are, where counts and votes would only merge classes.
- (A z)_ik are the votes of the nearest images, as many as a class has other images.
- l_ik is the log predictive density of image i under class k as a Gaussian whose mean is integrated
  out (`mixtures/collapsed.py`). It counts as h = w 16 a^2 + (1 - w) 10 (a/c)^4 dimensions, where a
  is the share of the images whose answer by images alone is the answer by text, and c the share
  that the text expects to be right: how far the images can be trusted is measured on the batch,
  without labels.

Shots are rows of z that are known; they describe the classes, but do not count in n_k. The
probabilities are tempered so that their mean confidence is what the agreement of text and images
suggests (`_answer`); the labels never depend on that.

Use it when nothing is known about the batch: it never supposes how many classes are present.
Avoid it where the paper's numbers are wanted, or where the answer for an image must not
depend on the others. docs/anchored.md says why each term is there and what was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.errors import InvalidSetting
from transduce.methods.anchored.answer import AnchoredAnswer
from transduce.methods.anchored.batch import ArrayRows, KnownRows, RowSource
from transduce.methods.anchored.memory import REMEMBERED, JoinedRows
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.anchored.past import Past, ShotFit
from transduce.methods.anchored.resume import Progress
from transduce.methods.anchored.start import bare_batch, in_basis, prepared
from transduce.methods.anchored.steps import AnchoredState, Moments
from transduce.methods.method import Support, accept
from transduce.methods.text_guess import class_embeddings_of
from transduce.simplex.passes import Checkpoint, Passes, in_threads
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Space, Task
from transduce.validation import at_least_zero, positive, whole_from_one

RESCALED_AT = (0, 2, 4)  # image steps
SHOT_WEIGHTS = (3.0, 6.0, 12.0, 24.0, 48.0, 96.0)
STEPS_BEFORE_SHOT_WEIGHT = 6


@final
@dataclass(frozen=True, kw_only=True)
class Anchored:
    """Label a batch jointly: text, class counts, neighbors and image clusters together.

    The default method: it estimates from the batch how many classes are present and how far its
    images can be trusted, and needs no setting. Labeled shots are optional, of some or all classes.

    Parameters
    ----------
    text_scale : float, default=100.0
        What cosines of image and class name are multiplied by. 100 is the scale that CLIP was
        trained to; take the encoder's own (SigLIP: about 110) if it is known.
    bias_variance : float, default=3.0
        Variance of the encoder's own bias between classes, in scores squared. Larger: class counts
        and votes say less.
    neighbors : int, default=3
        How many nearest images vote for the class of an image.
    vote_weight : float, default=5.0
        Score that a class gets if all neighbors are in it. 0: no votes.
    limit_votes : bool, default=True
        Whether votes weigh less where classes have fewer other images than there are neighbors.
    dimensions : float, default=16.0
        How many independent features an image's density counts as, where images and text always
        agree. Embeddings have hundreds, but these are far from independent. 0: no image evidence.
    full_dimensions : float, default=10.0
        The value of `dimensions` where every class is present, and images and text agree as often
        as the text expects to be right; more where they agree more often. 0: `dimensions` itself.
    variance_prior : float, default=20.0
        How many images the assumption that all features vary alike counts as.
    correlation_prior : float, default=5.0
        How many images per feature the assumption that features are uncorrelated within classes
        counts as. Infinite: features are scaled, but not decorrelated.
    shot_worth : float, default=3.0
        How many unlabeled images a shot, beyond the first of its class, counts as against
        `correlation_prior`.
    names_foretell_means : bool, default=True
        Whether the images of classes with similar names help to find a class of few images.
    text_steps : int, default=5
        Iterations with text and counts alone, which come first.
    image_steps : int, default=8
        Iterations with everything; more change nothing.
    remembered : int, default=2048
        How many images are kept as they are for those that come later (`carry_on`), with which they
        are labeled once more; all others as sums. 0: sums alone.

    Notes
    -----
    `Trace.estimates` has what was found in the batch: `concentration` (eps), `classes_present`,
    `prior_weight` (w), `agreement` (a), `text_confidence` (c), `image_weight` (h),
    `within_variance` (its share of the total variance), `confidence`, the expected share of right
    labels, `changed`, the share of labels that the last step changed, and `neighbor_recall`, the
    share of true neighbors among those that vote: 1 up to 16,384 images, where all pairs are
    compared. The schedule is fixed; `Trace.converged` says whether no label changed.

    `Prediction.evidence` has what speaks for the label of each image: `text` and `image`, the
    logarithm of its probability by the names alone and by counts and looks alone; `neighbors`,
    the share of the images around it (neighbors of neighbors) that have the same label; and
    `named`, how far its name is ahead of the next one in the mean score of all images with this
    label, infinite for classes with shots.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Anchored, Task
    >>> random, classes = np.random.default_rng(0), np.eye(16)
    >>> truth = random.integers(0, 4, 60)  # four of sixteen classes are present
    >>> images = classes[truth] + random.normal(0, 0.4, (60, 16))
    >>> task = Task.from_embeddings(images, classes, space="embedding")
    >>> prediction = Anchored(text_scale=10).predict(task)
    >>> int((task.zero_shot.argmax(1) == truth).sum()), int((prediction.labels == truth).sum())
    (51, 56)
    """

    name: ClassVar[str] = "anchored"
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "optional"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    uses_view: ClassVar[bool] = True

    text_scale: float = 100.0
    bias_variance: float = 3.0
    neighbors: int = 3
    vote_weight: float = 5.0
    limit_votes: bool = True
    dimensions: float = 16.0
    full_dimensions: float = 10.0
    variance_prior: float = 20.0
    correlation_prior: float = 5.0
    shot_worth: float = 3.0
    names_foretell_means: bool = True
    text_steps: int = 5
    image_steps: int = 8
    remembered: int = REMEMBERED

    def __post_init__(self) -> None:
        positive("text_scale", self.text_scale)
        positive("bias_variance", self.bias_variance)
        whole_from_one("neighbors", self.neighbors)
        at_least_zero("vote_weight", self.vote_weight)
        at_least_zero("dimensions", self.dimensions)
        at_least_zero("full_dimensions", self.full_dimensions)
        at_least_zero("shot_worth", self.shot_worth)
        positive("variance_prior", self.variance_prior)
        if not self.correlation_prior > 0.0:
            raise InvalidSetting(
                f"Expected a positive correlation_prior, found {self.correlation_prior!r}."
            )
        whole_from_one("text_steps", self.text_steps)
        whole_from_one("image_steps", self.image_steps)
        at_least_zero("remembered", self.remembered)

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly."""
        accept(self, task, partial_support=True)
        texts = class_embeddings_of(self, task)
        shots = None
        if task.support is not None and task.support_labels is not None:
            shots = KnownRows.of(task.support, task.support_labels, task.support_view)
        answer = self.solve(ArrayRows.of(task.query, task.view), texts, shots)
        return Prediction(
            probabilities=answer.dense(task.query.dtype),
            trace=answer.trace,
            model=answer.model,
            evidence=answer.evidence,
        )

    def carry_on(
        self,
        model: AnchoredModel,
        images: Float[np.ndarray, "query feature"],
        view: Float[np.ndarray, "query view"] | None = None,
        *,
        support: Float[np.ndarray, "shot feature"] | None = None,
        support_labels: Int[np.ndarray, " shot"] | None = None,
        support_view: Float[np.ndarray, "shot view"] | None = None,
    ) -> AnchoredAnswer:
        """Label images that came later, with what was learned of those before them.

        The new images are labeled jointly with those that are remembered, as one batch; all others
        stand by as sums, with the labels they got. Up to `remembered` images in all, the labels are
        those of all at once.

        Parameters
        ----------
        model : AnchoredModel
            `Prediction.model` of the images before, by a method with the same settings.
        images : array of shape (query, feature)
            The new images, by the encoder of the model.
        view : array of shape (query, view feature), optional
            The same by the encoder of the view, if the model has one.
        support, support_labels, support_view : arrays, optional
            Further labeled images.

        Returns
        -------
        AnchoredAnswer
            Its `model` has learned of the new images, too; its `drift` says how they differ.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import Anchored, Task
        >>> random, classes = np.random.default_rng(0), np.eye(16)
        >>> truth = np.repeat([0, 1, 2, 3], 20)
        >>> images = classes[truth] + random.normal(0, 0.4, (80, 16))
        >>> first = random.permutation(80) < 60
        >>> method = Anchored(text_scale=10)
        >>> task = Task.from_embeddings(images[first], classes, space="embedding")
        >>> model = method.predict(task).model
        >>> later = method.carry_on(model, images[~first])
        >>> int((later.classes[:, 0] == truth[~first]).sum()), later.model.past.images
        (18, 80.0)
        """
        if model.past is None:
            raise InvalidSetting(
                "Expected a model that images can join, found one of an older version; label "
                "the images before once more."
            )
        shots = None
        if support is not None and support_labels is not None:
            shots = KnownRows.of(support, support_labels, support_view)
        texts = model.texts / np.float32(self.text_scale)
        return self.solve(ArrayRows.of(images, view), texts, shots, past=model.past)

    def solve(
        self,
        rows: RowSource,
        texts: Float[np.ndarray, "class feature"],
        shots: KnownRows | None = None,
        *,
        passes: Passes = in_threads,
        checkpoint: Checkpoint | None = None,
        past: Past | None = None,
    ) -> AnchoredAnswer:
        """Label images jointly that are read some at a time: a batch of any size.

        Parameters
        ----------
        rows : RowSource
            Where the images are; `ArrayRows` for an array.
        texts : array of shape (class, feature)
            Embeddings of the class names.
        shots : KnownRows, optional
            Labeled images.
        passes : Passes, optional
            Who works on the chunks of the batch; by default the threads of this process. The
            answer is the same to the bit.
        checkpoint : Checkpoint, optional
            Where the state is kept after each step; the batch goes on from what is found there.
            Not used with a `past`.
        past : Past, optional
            The images that were labeled before, `AnchoredModel.past`. These images are labeled with
            those that are remembered, and as if all others were in the batch with the labels they
            got; the answer is of these images, and its model has both.
        """
        checkpoint = checkpoint if past is None else None
        with one_blas_thread(0):  # chunks and blocks go over threads, each with its own products
            if past is not None and len(past.memory):
                rows = JoinedRows(rows, past.memory.rows())
            batch = bare_batch(self, rows, texts, shots)
            saved = checkpoint.last() if checkpoint else None
            if saved is not None:
                begun = Progress.of(saved, self, batch, passes)
            else:
                batch = prepared(batch, self.neighbors, passes, past and past.sums)
                if past is not None:
                    past = past.about(batch.middle.astype(np.float64))
                if past is None or past.sums is None:
                    batch = in_basis(batch)
                moments = Moments.of(batch, passes, past and past.sums)
                start = AnchoredState.first(self, batch, moments, passes, past)
                begun = Progress(start, -1, self._known_shot_fit(start))
            return AnchoredAnswer.of(self._solve(begun, self.image_steps, checkpoint))

    def _known_shot_fit(self, start: AnchoredState) -> ShotFit | None:
        """What the shots of this batch say of the image evidence, or those of the past."""
        found, past = self._shot_fit(start), start.past
        if found is None and past is not None and not np.isnan(past.shot_weight):
            return ShotFit(past.shot_weight, past.confidence)
        return found

    def _solve(
        self, begun: Progress, image_steps: int, checkpoint: Checkpoint | None = None
    ) -> AnchoredState:
        """Iterate; return the state that the last assignments come from."""
        state = begun.state
        for step in range(begun.step + 1, self.text_steps + image_steps):
            image_step = step - self.text_steps
            if step:
                state = state.assigned(with_sums=image_step >= 0)
            state = state.with_prior()
            if image_step >= 0:
                if image_step in RESCALED_AT:
                    state = state.rescaled()
                if image_step == 0:
                    state = state.with_trust()
                state = state.with_classes()
                if image_step == 0:
                    state = state.with_agreement()
                state = state.weighted(begun.shots)
            if checkpoint is not None:
                checkpoint.keep(Progress(state, step, begun.shots).arrays())
        return state

    def _shot_fit(self, start: AnchoredState) -> ShotFit | None:
        """The weight of image evidence that names the shots best, each of them left out.

        None without two shots of some class.
        """
        batch = start.batch
        labels = batch.shot_labels
        tested = np.bincount(labels, minlength=batch.n_classes)[labels] > 1
        if not tested.any():
            return None
        state = self._solve(Progress(start, -1, None), STEPS_BEFORE_SHOT_WEIGHT)
        state = state.assigned(with_sums=True)
        density = state.shot_densities()[tested]
        text = batch.shots[tested] @ batch.texts.T
        right = np.arange(len(density)), labels[tested]
        fits = []
        for weight in SHOT_WEIGHTS:
            named = softmax(text + weight * density)
            fit = float(np.log(named[right] + 1e-12).mean())
            fits.append((fit, ShotFit(weight, float((named.argmax(1) == labels[tested]).mean()))))
        return max(fits, key=lambda found: found[0])[1]
