"""The state of `Anchored` after a step as arrays, and back: a stopped run goes on where it was."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from transduce.methods.anchored.batch import AnchoredBatch
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.past import ShotFit
from transduce.methods.anchored.start import in_basis
from transduce.methods.anchored.steps import AnchoredState, Assignments, Moments
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.mixtures.within import Scaling, Sparse
from transduce.simplex.passes import Passes

if TYPE_CHECKING:
    from transduce.methods.anchored.anchored import Anchored

Arrays = Mapping[str, np.ndarray]
ENTRIES = ("shares", "classes", "starts")  # of the assignments of a chunk


@dataclass(frozen=True)
class Progress:
    """Where a batch is: its state after a step, and what its shots say of the image evidence."""

    state: AnchoredState
    step: int
    shots: ShotFit | None

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the next steps depend on, by name."""
        state, batch = self.state, self.state.batch
        assert batch.votes is not None
        numbers = (
            self.step, *((np.nan, 0.0) if self.shots is None else astuple(self.shots)),
            batch.neighbor_recall, state.prior.concentration, state.agreement,
            state.text_confidence, state.image_weight,
            0.0 if state.scaling is None else state.scaling.share,
        )  # fmt: skip
        found = {
            "numbers": np.array(numbers, np.float64),
            "middle": batch.in_features.middle,
            "products": state.moments.products,
            "mass": state.assignments.mass,
            "present": state.assignments.present,
            **_apart("votes", batch.votes),
        }
        for index, part in enumerate(state.assignments.z.parts):
            found |= {f"z.{name}.{index}": getattr(part, name) for name in ENTRIES}
        given = {
            "sums": state.assignments.sums,
            "lengths": state.lengths,
            "candidates": batch.candidates,
        }
        if state.scaling is not None:
            given |= {"scale": state.scaling.scale, "root": state.scaling.root}
        if state.classes is not None:
            classes = state.classes
            given |= {
                "class_sums": classes.sums,
                "class_mass": classes.mass,
                "pseudo_images": classes.pseudo_images,
                "variances": np.array([classes.within, classes.total]),
            }
        return found | {name: array for name, array in given.items() if array is not None}

    @classmethod
    def of(
        cls, arrays: Arrays, method: "Anchored", batch: AnchoredBatch, run: Passes
    ) -> "Progress":
        """What `arrays` returned, for the batch as it is before its first pass."""
        step, weight, right, recall, concentration, *measured = arrays["numbers"].tolist()
        agreement, text_confidence, image_weight, share = measured
        shots = None if np.isnan(weight) else ShotFit(weight, right)
        batch = replace(
            batch,
            middle=arrays["middle"],
            votes=_together("votes", arrays),
            neighbor_recall=recall,
            candidates=arrays.get("candidates"),
        )
        batch = in_basis(batch)
        classes = None
        if "class_sums" in arrays:
            within, total = arrays["variances"].tolist()
            classes = CollapsedGaussians(
                sums=arrays["class_sums"],
                mass=arrays["class_mass"],
                pseudo_images=arrays["pseudo_images"],
                within=within,
                total=total,
            )
        scaling = None
        if "scale" in arrays:
            scale, root = arrays["scale"], arrays.get("root")
            if batch.basis is None or root is None:
                scaling = Scaling.of(scale, root, share)
            else:
                scaling = Scaling.of_coordinates(scale, root, share)
        state = AnchoredState(
            method=method,
            batch=batch,
            run=run,
            moments=Moments.with_shots(batch, arrays["products"]),
            assignments=Assignments(
                _stored(arrays, batch), arrays["mass"], arrays["present"], arrays.get("sums")
            ),
            prior=PresencePrior(method.bias_variance, concentration, arrays["mass"]),
            scaling=scaling,
            lengths=arrays.get("lengths"),
            classes=classes,
            agreement=agreement,
            text_confidence=text_confidence,
            image_weight=image_weight,
            shot_weight=None if shots is None else shots.weight,
            within_share=0.0 if classes is None else classes.within / classes.total,
        )
        return cls(state if classes is None else state.weighted(shots), int(step), shots)


def _stored(arrays: Arrays, batch: AnchoredBatch) -> StoredRows:
    """The assignments, chunk by chunk."""
    return StoredRows(
        tuple(
            Entries(
                arrays[f"z.shares.{index}"],
                arrays[f"z.classes.{index}"],
                arrays[f"z.starts.{index}"],
                batch.n_classes,
            )
            for index in range(len(batch.chunks()))
        )
    )


def _apart(name: str, matrix: Sparse) -> dict[str, np.ndarray]:
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
        f"{name}.shape": np.array(matrix.shape),
    }


def _together(name: str, arrays: Arrays) -> Sparse:
    parts = (arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"])
    rows, columns = arrays[f"{name}.shape"].tolist()
    return sp.csr_array(parts, shape=(rows, columns))
