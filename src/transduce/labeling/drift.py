"""How new images differ from those of the run they join, in words."""

from collections.abc import Mapping

from transduce.labeling.settings import LabelSettings
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.past import Past

MOST_NAMED = 3  # classes in a warning
MANY_RENAMED = 0.05  # share of the remembered images, before it is said
LITTLE_DRIFT = 0.03  # share of the images that may be far before it is said


def drift_warnings(settings: LabelSettings, past: Past, drift: Drift, images: int) -> list[str]:
    """Return how new images differ from those before, in words; empty if they do not."""
    warnings = []
    if drift.appeared:
        warnings.append(
            f"Classes appear, or are far more common than among the {round(past.images):,} images "
            f"before: {_named(drift.appeared, settings)}. Check some of these first."
        )
    if drift.moved:
        warnings.append(
            f"Images look unlike those that had the same label before: "
            f"{_named(drift.moved, settings)}. One of the two may be wrong; check some of both."
        )
    renamed = sum(drift.renamed.values())
    if renamed > max(1.0, MANY_RENAMED * drift.remembered):
        warnings.append(
            f"With the new images {renamed:,} of {drift.remembered:,} images from before would get "
            f"another label than was written, most of them labeled "
            f"{_named(drift.renamed, settings)}. To renew these, label all images together."
        )
    far = int(drift.far.sum())
    share = far / max(images, 1)
    if far > 1 and share > max(2.0 * past.far, LITTLE_DRIFT):
        warnings.append(
            f"{far:,} of {images:,} new images ({share:.0%}) are farther from every class than "
            f"is usual among those before ({past.far:.0%}): they may be of no class, or of "
            "another kind. --allow-unknown labels them unknown."
        )
    return warnings


def _named(counts: Mapping[int, int], settings: LabelSettings) -> str:
    """The classes with the most images, and their numbers."""
    most = sorted(counts, key=lambda k: -counts[k])
    named = ", ".join(f"{settings.classes[k]} ({counts[k]:,})" for k in most[:MOST_NAMED])
    more = len(most) - MOST_NAMED
    return f"{named} and {more:,} more" if more > 0 else named
