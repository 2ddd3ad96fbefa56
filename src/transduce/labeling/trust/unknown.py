"""Images of none of the classes: how strange each is, and from where on to suspect it.

An image is strange if it is far from every class and if it lies between many classes; both together
find such images better than the distance alone (docs/trust.md).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64

from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, UNKNOWN_LABEL
from transduce.labeling.table import far_away
from transduce.labeling.trust.audit import read_audit

FEWEST_UNKNOWN = 3  # audited images of no class from which a threshold is learned


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspects:
    """Images that may be of none of the classes.

    Parameters
    ----------
    strangeness : array of shape (image,)
        How strange each image is, in standard deviations.
    suspected : array of bool of shape (image,)
        Whether it may be of none of the classes; what people said of an image counts first.
    from_audit : bool
        Whether the audit decided from where on; otherwise what is usual in the run did.
    """

    strangeness: Float32[np.ndarray, " image"]
    suspected: Bool[np.ndarray, " image"]
    from_audit: bool


def suspects(run: RunDirectory) -> Suspects:
    """Return which images of a run may be of none of its classes.

    With at least three audited images answered `unknown`, the threshold is where it separates the
    audited images best; otherwise 2.25 robust standard deviations above the median.
    """
    table = run.labels
    strange = table.strangeness
    suspected = far_away(strange) | (table.label == UNKNOWN)
    audit = read_audit(run)
    learned = False
    if audit is not None and not audit.void:
        answered = np.array([name in audit.answers for name in audit.file_names], bool)
        rows = audit.rows[answered]
        given = [audit.answers[name] for name in audit.file_names if name in audit.answers]
        unknown = np.array([label == UNKNOWN_LABEL for label in given], bool)
        learned = int(unknown.sum()) >= FEWEST_UNKNOWN and not unknown.all()
        if learned:
            suspected = strange >= best_threshold(strange[rows].astype(np.float64), unknown)
        suspected[rows] = unknown
    suspected &= ~table.corrected
    return Suspects(strangeness=strange, suspected=suspected, from_audit=learned)


def best_threshold(
    strange: Float64[np.ndarray, " audited"], unknown: Bool[np.ndarray, " audited"]
) -> float:
    """Return the threshold with the fewest mistakes of both kinds among audited images.

    Halfway between two of them, and the highest of equally good ones.
    """
    order = np.argsort(-strange, kind="stable")
    values, marked = strange[order], unknown[order]
    # The first n are suspected: those not marked among them and those marked after are mistakes.
    mistakes = np.concatenate([[0], np.cumsum(~marked)]) + (
        marked.sum() - np.concatenate([[0], np.cumsum(marked)])
    )
    best = int(mistakes.argmin())
    if best == 0:
        return float(np.nextafter(values[0], np.inf))
    after = values[best] if best < len(values) else values[best - 1] - 1.0
    return float(0.5 * (values[best - 1] + after))
