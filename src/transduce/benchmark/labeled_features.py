"""Features of a dataset with its labels, split by split: what episodes are drawn from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy.typing import ArrayLike

from transduce import validation
from transduce.benchmark.datasets.dataset import Dataset
from transduce.errors import InvalidStore, UnknownName
from transduce.features.store import FeatureStore


@dataclass(frozen=True, eq=False)
class Split:
    """Embeddings of one split as rows, and the class index of each."""

    embeddings: Float32[np.ndarray, "image feature"]
    labels: Int64[np.ndarray, " image"]

    @classmethod
    def of(cls, embeddings: ArrayLike, labels: ArrayLike, n_classes: int) -> "Split":
        """Return a checked split; rows are not copied if they are float32 already."""
        rows = validation.nonzero_rows("embeddings", embeddings).astype(np.float32, copy=False)
        numbers = validation.label_vector("labels", labels, n_classes)
        validation.same_length("embeddings", rows, "labels", numbers)
        return cls(rows, numbers)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def rows_of_class(self) -> tuple[Int64[np.ndarray, " _member"], ...]:
        """Rows of each class, up to the highest label that occurs."""
        order = np.argsort(self.labels, kind="stable")
        return tuple(np.split(order, np.cumsum(np.bincount(self.labels))[:-1]))


@dataclass(frozen=True, eq=False)
class LabeledFeatures:
    """A dataset as one encoder sees it: classes in order, and splits of embedded images."""

    name: str
    encoder: str
    classes: tuple[str, ...]
    class_embeddings: Float[np.ndarray, "class feature"]
    splits: Mapping[str, Split]

    def __post_init__(self) -> None:
        validation.as_many(
            "class_embeddings", self.class_embeddings, f"classes of {self.name}", self.n_classes
        )
        for name, split in self.splits.items():
            whole = f"the {name} split of {self.name}"
            validation.same_length(
                f"embeddings of {whole}", split.embeddings, "labels", split.labels
            )
            validation.same_width(
                whole, split.embeddings, "class_embeddings", self.class_embeddings
            )
            validation.label_vector(f"the labels of {whole}", split.labels, self.n_classes)

    @classmethod
    def from_store(
        cls,
        store: FeatureStore,
        dataset: Dataset,
        class_embeddings: Float[np.ndarray, "class feature"],
    ) -> "LabeledFeatures":
        """Return the rows of a store in the order of the dataset's splits."""
        row_of = {key: row for row, key in enumerate(store.keys())}
        splits = {}
        for name, samples in dataset.samples.items():
            missing = [sample.path for sample in samples if sample.path not in row_of]
            if missing:
                raise InvalidStore(
                    f"Expected the features of {len(samples):,} {name} images of {dataset.name} in "
                    f"{store.folder}, found none of {len(missing):,}, such as {missing[0]}; embed "
                    f"them: transduce embed {dataset.root} --out {store.folder}"
                )
            rows = np.array([row_of[sample.path] for sample in samples], dtype=np.int64)
            labels = [sample.label for sample in samples]
            splits[name] = Split.of(store.take(rows), labels, len(dataset.classes))
        encoder = store.identity.encoder
        return cls(dataset.name, encoder, dataset.classes, class_embeddings, splits)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def split(self, name: str) -> Split:
        """Return the split of this name."""
        try:
            return self.splits[name]
        except KeyError:
            raise UnknownName(f"split of {self.name}", name, self.splits) from None

    def rows_by_class(self, name: str) -> list[Int64[np.ndarray, " _member"]]:
        """Return the rows of each class in the split; none for a class it lacks."""
        rows = list(self.split(name).rows_of_class)
        lacking = self.n_classes - len(rows)
        return rows + [np.empty(0, np.int64) for _ in range(lacking)]


def split_rows(
    rows_by_class: Sequence[Int64[np.ndarray, " _member"]],
    cuts: Callable[[int], list[int]],
    *,
    seed: int,
) -> dict[str, Int64[np.ndarray, " _row"]]:
    """Return rows of train, val and test: those of each class are shuffled and cut at `cuts`."""
    generator = np.random.default_rng(seed)
    parts = [np.split(generator.permutation(rows), cuts(len(rows))) for rows in rows_by_class]
    names = ("train", "val", "test")
    return {
        name: np.sort(np.concatenate(rows))
        for name, rows in zip(names, zip(*parts, strict=True), strict=True)
    }
