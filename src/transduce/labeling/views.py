"""Views: the same images as another encoder sees them, beside the encoder that knows the names.

Names of classes come from the first encoder; methods with `uses_view` compare images by the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders import ENCODERS, OPEN_CLIP_STARTS
from transduce.encoders.hub import DownloadBar, cached_hub_model, no_bar
from transduce.errors import InvalidSetting, InvalidStore, some_of
from transduce.features.importing import open_features
from transduce.features.store import FeatureStore
from transduce.images.entries import Listing, is_url
from transduce.labeling.settings import AUTO, LabelSettings
from transduce.methods import METHODS, Method
from transduce.validation import unit_rows

MOST_NAMED = 5  # files in an error message
SUGGESTED = "dinov2"


@dataclass(frozen=True, slots=True)
class View:
    """Features by another encoder, and which of their rows each image of a run is."""

    store: FeatureStore
    rows: Int[np.ndarray, " image"]

    @classmethod
    def of(cls, store: FeatureStore, file_names: Sequence[str]) -> "View":
        """Return the view of these images, found by their file names; refused if one is missing."""
        row_of = {name: row for row, name in enumerate(store.keys())}
        _refuse_missing([name for name in file_names if name not in row_of], store)
        return cls(store, np.array([row_of[name] for name in file_names], np.int64))

    def take(self, images: Int[np.ndarray, " chosen"]) -> Float32[np.ndarray, "chosen feature"]:
        """Return the unit rows of these images of the run."""
        where = f"the view in {self.store.folder}"
        return unit_rows(where, self.store.take(self.rows[images]), error=InvalidStore)


def _refuse_missing(missing: Sequence[str], store: FeatureStore) -> None:
    if not missing:
        return
    why = {skip.file_name: skip.reason for skip in store.skipped()}
    named = [f"{name} ({why[name]})" if name in why else name for name in missing]
    raise InvalidStore(
        f"Expected every image of the run in the view {store.folder}, found none of "
        f"{some_of(named, MOST_NAMED)}; embed these too, take them out of the source, or "
        "leave --view out."
    )


def is_encoder(view: str) -> bool:
    """Whether a `--view` is the id of an encoder, and not the path of features."""
    return view.partition(":")[0].replace("open-clip", "open_clip") in ENCODERS or view.startswith(
        OPEN_CLIP_STARTS
    )


def check_view(settings: LabelSettings, method: Method | None, *, loaded: bool) -> None:
    """Refuse a view that the method does not look at, or that cannot be made.

    `loaded` says that there is an encoder for it already, whatever the setting.
    """
    if settings.method != AUTO and not getattr(method, "uses_view", False):
        able = [name for name in METHODS if getattr(METHODS[name], "uses_view", False)]
        raise InvalidSetting(
            f"Expected a --method that looks at --view ({', '.join([AUTO, *able])}), found "
            f"{settings.method}; leave one of the two out."
        )
    if loaded or is_encoder(settings.view):
        if settings.features:
            raise InvalidSetting(
                f"Expected features as --view beside --features, found the encoder "
                f"{settings.view}; embed the images first: transduce embed SOURCE --encoder "
                f"{settings.view} --out VIEW"
            )
    elif not (is_url(settings.view) or settings.path(settings.view).exists()):
        raise InvalidSetting(
            f"Expected --view to be an encoder (transduce list encoders) or the path of features, "
            f"found {settings.view!r}, which is neither; check its spelling."
        )


def given_view(
    settings: LabelSettings, images: Listing | None, download: DownloadBar = no_bar
) -> FeatureStore | None:
    """Return the features that `--view` names; None if it is an encoder.

    Images to embed that the view does not know are refused here, before the work begins.
    """
    if is_encoder(settings.view):
        return None
    store = open_features(settings.address(settings.view), bar=download)
    if images is not None:  # what was unreadable for the view may be so again
        known = {*store.keys(), *(skip.file_name for skip in store.skipped())}
        _refuse_missing([entry.key for entry in images.entries if entry.key not in known], store)
    return store


def view_hint(settings: LabelSettings) -> str:
    """Return what a second view would gain, where one is at hand and not in use; else ""."""
    hub = ENCODERS[SUGGESTED].hub
    if settings.view or settings.features or settings.method != AUTO or hub is None:
        return ""
    if not cached_hub_model(hub):
        return ""
    return (
        f"Hint: {SUGGESTED} is on this machine. A second view gained 0 to 4 points with a CLIP of "
        f"the size B/32 on aerial photos; ask for it: --view {SUGGESTED}"
    )
