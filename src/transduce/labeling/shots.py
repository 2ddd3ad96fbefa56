"""What is known beforehand: shots from class sub-folders, and corrections of single images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders.class_names import ClassNames, readable
from transduce.errors import InvalidFile, UnknownName
from transduce.features.store import FeatureStore
from transduce.labeling.table import UNKNOWN, UNKNOWN_LABEL


@dataclass(frozen=True, slots=True)
class Shots:
    """Labeled images from outside the batch."""

    embeddings: Float32[np.ndarray, "shot feature"]
    labels: Int[np.ndarray, " shot"]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def none(cls, dimension: int) -> "Shots":
        return cls(np.zeros((0, dimension), np.float32), np.zeros(0, np.int64))

    @classmethod
    def from_store(cls, store: FeatureStore, classes: ClassNames) -> "Shots":
        """The images of a store, whose names begin with the folder of their class."""
        return cls(store.embeddings(), folder_labels(store.keys(), classes))

    def and_also(self, other: "Shots") -> "Shots":
        return Shots(
            np.concatenate([self.embeddings, other.embeddings]),
            np.concatenate([self.labels, other.labels]),
        )


def folder_labels(keys: Sequence[str], classes: ClassNames) -> Int[np.ndarray, " shot"]:
    """The class of each image from the first folder of its name, spelt as label or prompt."""
    places = {readable(label): place for place, label in enumerate(classes.labels)}
    places |= {prompt: place for place, prompt in enumerate(classes.prompts)}
    places |= {label: place for place, label in enumerate(classes.labels)}
    labels = []
    for key in keys:
        folder, slash, _ = key.partition("/")
        if not slash:
            raise InvalidFile(
                f"Expected the images of --support in a sub-folder for each class, found {key!r} "
                "beside them; move it into the folder of its class."
            )
        place = places.get(folder, places.get(readable(folder)))
        if place is None:
            raise UnknownName("class as the name of a folder of --support", folder, classes.labels)
        labels.append(place)
    return np.array(labels, dtype=np.int64)


def correction_rows(
    corrections: Mapping[str, str], file_names: Sequence[str], classes: ClassNames
) -> dict[int, int]:
    """Row to class number, UNKNOWN for `unknown`; what does not fit the run is refused."""
    rows = {name: row for row, name in enumerate(file_names)}
    places = {label: place for place, label in enumerate(classes.labels)}
    fixed = {}
    for name, label in corrections.items():
        if name not in rows:
            near = get_close_matches(name, rows, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; remove that line."
            raise InvalidFile(f"Expected corrections of images of this run, found {name!r}{hint}")
        if label not in places and label != UNKNOWN_LABEL:
            raise UnknownName(f"class (or {UNKNOWN_LABEL!r}) for {name!r}", label, classes.labels)
        fixed[rows[name]] = places.get(label, UNKNOWN)
    return fixed
