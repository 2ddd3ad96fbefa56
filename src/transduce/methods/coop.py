"""CoOp: a prompt learned as vectors, through a frozen text tower.

Zhou, Yang, Loy, Liu, "Learning to Prompt for Vision-Language Models", IJCV 2022. The embedding of
class k is the tower's feature of "[v_1] ... [v_16] name." with learned word vectors v, common to
all classes or each class its own; they minimize over the support

    mean -log softmax(scale cos(image, feature_k))[label]

by SGD (momentum 0.9, weight decay 5e-4), one warm-up epoch at 1e-5, then a cosine schedule. The
published training re-crops the shots in every epoch; a task holds embeddings, so here each shot
is seen as it is. Use it where class names alone describe images badly, and there are shots and
time: it is thousands of times slower than the methods without training.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import cos, pi
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.errors import InvalidSetting, InvalidTask
from transduce.methods.learned_context import LearnedContext, Prompts
from transduce.methods.method import Support, accept
from transduce.methods.prototypes import directions, support_of
from transduce.methods.text_tower import TextTower, torch, tower_fingerprint
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import positive, whole_from_one

if TYPE_CHECKING:
    from torch import Tensor

WARM_UP_RATE = 1e-5
INITIAL_SPREAD = 0.02


Progress = Callable[[int, int, float], None]  # (epochs done, epochs, mean loss of the last one)


@final
@dataclass(frozen=True, kw_only=True)
class CoOp:
    """Label images one by one with prompts learned from labeled shots (needs torch).

    The text tower is the encoder's own, from `transduce.encoders.prompt_tower`; the images of the
    task must come from the same encoder. The answer's `model.context` can be
    written to a file (`transduce.encoders.context_files`) and applied again without training.

    Parameters
    ----------
    tower : TextTower
        The text tower that prompts are learned through; required.
    class_names : iterable of str
        One name for each class of the task; "_" is read as a space.
    context_length : int, default=16
        Learned vectors before the class name; 16 as published. Fewer train faster.
    class_specific : bool, default=False
        True: each class has vectors of its own, better for fine-grained classes with many
        shots. False: common to all classes, and applicable to other names.
    epochs : int or None, default=None
        Passes over the shots. None: 50, 100 or 200 for 1, 2-4 or more shots a class, as published.
    learning_rate : float, default=0.002
        Of SGD after one warm-up epoch; a cosine schedule brings it to zero.
    batch_size : int, default=32
        Shots per step.
    seed : int, default=0
        Of the initial vectors and the order of the shots.
    progress : callable, optional
        Called after each epoch with (epochs done, epochs, mean loss).

    Examples
    --------
    >>> from transduce import load_encoder, Task  # doctest: +SKIP
    >>> from transduce.encoders.prompt_tower import prompt_tower  # doctest: +SKIP
    >>> encoder = load_encoder("open_clip:ViT-B-32/openai")  # doctest: +SKIP
    >>> method = CoOp(tower=prompt_tower(encoder), class_names=["cat", "dog"])  # doctest: +SKIP
    >>> method.predict(task).labels  # doctest: +SKIP
    """

    name: ClassVar[str] = "coop"
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    tower: TextTower | None = None
    class_names: Iterable[str] = ()
    context_length: int = 16
    class_specific: bool = False
    epochs: int | None = None
    learning_rate: float = 0.002
    batch_size: int = 32
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.tower is None:
            raise InvalidSetting(
                "Expected a text tower for coop, found none; give CoOp(tower=..., class_names=...) "
                "the tower of a loaded encoder, transduce.encoders.prompt_tower.prompt_tower(...)."
            )
        object.__setattr__(self, "class_names", tuple(self.class_names))
        whole_from_one("context_length", self.context_length)
        whole_from_one("batch_size", self.batch_size)
        positive("learning_rate", self.learning_rate)
        if self.epochs is not None:
            whole_from_one("epochs", self.epochs)

    def predict(self, task: Task) -> Prediction:
        """Learn prompts from the support, then label every query by itself."""
        accept(self, task)
        names = tuple(self.class_names)
        if len(names) != task.n_classes:
            raise InvalidTask(
                f"Expected class_names for {task.n_classes} classes, found {len(names)}."
            )
        context, losses = self._learn(task, names)
        assert self.tower is not None
        model = context.classifier(self.tower)
        probabilities = model.probabilities(task.query).astype(task.query.dtype, copy=False)
        # A fixed budget, as published: it ends where the schedule has brought the rate to zero.
        trace = Trace(tuple(losses), len(losses), True)
        return Prediction(probabilities, trace, model=model)

    def _learn(self, task: Task, names: tuple[str, ...]) -> tuple[LearnedContext, list[float]]:
        """The context after the last epoch, and the mean loss of each epoch."""
        assert self.tower is not None
        shots, labels = support_of(task)
        prompts = Prompts(self.tower, names, self.context_length)
        trainer = _Trainer(prompts, directions(shots.astype(np.float32)), labels, self.tower.scale)
        shape = (self.context_length, prompts.width)
        generator = torch().Generator().manual_seed(self.seed)
        context = INITIAL_SPREAD * torch().randn(
            (len(names), *shape) if self.class_specific else shape, generator=generator
        )
        context.requires_grad_()
        optimizer = torch().optim.SGD([context], lr=1.0, momentum=0.9, weight_decay=5e-4)
        epochs = self.epochs or published_epochs(len(labels) / task.n_classes)
        losses: list[float] = []
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = self._rate(epoch, epochs)
            order = torch().randperm(len(labels), generator=generator)
            batches = order.split(self.batch_size)
            total = sum(trainer.step(context, optimizer, rows) for rows in batches)
            losses.append(total / len(labels))
            if self.progress is not None:
                self.progress(epoch + 1, epochs, losses[-1])
        vectors = context.detach().numpy()
        return LearnedContext(vectors, names, tower_fingerprint(self.tower)), losses

    def _rate(self, epoch: int, epochs: int) -> float:
        if epoch == 0 and epochs > 1:
            return WARM_UP_RATE
        return self.learning_rate * (1 + cos(pi * epoch / epochs)) / 2


def published_epochs(shots_per_class: float) -> int:
    """Epochs of the published training for that many shots a class."""
    return 50 if shots_per_class < 2 else 100 if shots_per_class <= 4 else 200


class _Trainer:
    """Steps of the loss over batches of shots; nothing of the tower itself is changed."""

    def __init__(
        self,
        prompts: Prompts,
        images: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        scale: float,
    ) -> None:
        self._prompts, self._scale = prompts, scale
        self._images, self._labels = torch().tensor(images), torch().tensor(labels)

    def step(self, context: "Tensor", optimizer: Any, rows: "Tensor") -> float:  # noqa: ANN401
        """One step; the summed loss of the batch before it."""
        loss = self.loss(context, rows)
        # Only the context is differentiated: no gradient is left behind in the tower.
        gradient = None
        if loss.requires_grad:
            (gradient,) = torch().autograd.grad(loss, [context], allow_unused=True)
        if gradient is None:
            raise InvalidSetting(
                "Expected gradients to flow through the text tower, found none; its encode must "
                "use token_embedding and must not run under torch.no_grad."
            )
        context.grad = gradient
        optimizer.step()
        return float(loss.detach()) * len(rows)

    def loss(self, context: "Tensor", rows: "Tensor") -> "Tensor":
        features = self._prompts.encode(context)
        if features.shape[1] != self._images.shape[1]:
            raise InvalidTask(
                f"Expected images with {features.shape[1]} features like the text tower's, found "
                f"{self._images.shape[1]}; were they made by the same encoder?"
            )
        classes = torch().nn.functional.normalize(features.float(), dim=1).cpu()
        scores = self._scale * self._images[rows] @ classes.T
        return torch().nn.functional.cross_entropy(scores, self._labels[rows])
