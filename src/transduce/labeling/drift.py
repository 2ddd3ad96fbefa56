"""How new images differ from those of the run they join, in words."""

from collections.abc import Mapping

from transduce.labeling.settings import LabelSettings
from transduce.methods.anchored_past import Past

MOST_NAMED = 3  # classes in a warning
LITTLE_DRIFT = 0.03  # share of the images that may be far before it is said


def drift_warnings(
    settings: LabelSettings, past: Past, appeared: Mapping[int, int], far: int, images: int
) -> list[str]:
    """Return how new images differ from those before, in words; empty if they do not."""
    warnings = []
    if appeared:
        most = sorted(appeared, key=lambda k: -appeared[k])
        named = ", ".join(f"{settings.classes[k]} ({appeared[k]:,})" for k in most[:MOST_NAMED])
        more = len(most) - MOST_NAMED
        named += f" and {more:,} more" if more > 0 else ""
        warnings.append(
            f"Classes appear that none of the {round(past.count):,} images before had: {named}. "
            "Check some of these first."
        )
    share = far / max(images, 1)
    if far > 1 and share > max(2.0 * past.far, LITTLE_DRIFT):
        warnings.append(
            f"{far:,} of {images:,} new images ({share:.0%}) are farther from every class than "
            f"is usual among those before ({past.far:.0%}): they may be of no class, or of "
            "another kind. --allow-unknown labels them unknown."
        )
    return warnings
