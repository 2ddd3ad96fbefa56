"""Images that come later, with what a run learned: `transduce label NEW --like RUN`.

The classes, their embeddings, the encoder and the view are those of the run, and so are the sums
that its images left behind (`Past`); corrections that were made since move their images there. The
new run keeps the sums of both, so that a third can be like it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders.encoder import Identity
from transduce.errors import InvalidSetting
from transduce.features.planning import check_same_encoder
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import AUTO, EVERYTHING, LabelSettings, indices_of
from transduce.labeling.views import View, is_encoder
from transduce.methods.anchored import Anchored
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.anchored.past import Past

MOST_NAMED = 3  # classes in an error message


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a run learned, for images that come later."""

    run: RunDirectory
    class_embeddings: Float32[np.ndarray, "class feature"]
    past: Past

    @classmethod
    def of(cls, settings: LabelSettings) -> "Learned":
        """What the run of `settings.like` learned; refused if it cannot be carried on."""
        run = RunDirectory.load(settings.path(settings.like))
        _refuse(settings, run)
        model = run.model()
        pasts = [AnchoredModel.from_arrays(arrays).past for arrays in model.batches if _is(arrays)]
        if not pasts:
            raise InvalidSetting(
                f"Expected --like to name a run of the method auto or {Anchored.name}, found "
                f"{run.summary.method} in {run.folder}; label those images again with "
                "--method auto."
            )
        kept = [past for past in pasts if past is not None]
        if len(kept) < len(pasts):
            raise InvalidSetting(
                f"Expected a run that images can join, found one of an older version in "
                f"{run.folder}; make it again: transduce label --run {run.folder}/run.toml"
            )
        return cls(run, model.class_embeddings, _corrected(run, reduce(add, kept)))

    def check_encoder(self, identity: Identity) -> None:
        """Refuse another encoder than that of the run."""
        check_same_encoder(self.run.identity, identity, str(self.run.folder), "this run")

    def check_view(self, view: View | None) -> None:
        """Refuse another view than that of the run."""
        before = self.run.view()
        if (view is None) != (before is None):
            had, found = ("a", "none") if view is None else ("no", "one")
            raise InvalidSetting(
                f"Expected a --view just if the run of --like has one, found {found} where it has "
                f"{had} view; compare the new images as those before."
            )
        if view is not None and before is not None:
            where = f"the view of {self.run.folder}"
            check_same_encoder(before.identity, view.store.identity, where, "the view")


def options_like(folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run, with those that `--like` decides where none was given.

    An option that contradicts the run is refused; `classes` and `prompts` are always the run's.
    """
    run = RunDirectory.load(folder)
    before = run.settings
    view, seen = "", run.view()
    if seen is not None and not options.get("view"):
        view = seen.identity.encoder
        if options.get("features") or not is_encoder(view):
            raise InvalidSetting(
                f"Expected --view with the features of the new images by {view}, found none; the "
                f"images of {folder} were compared by these."
            )
    if not options.get("features"):
        asked = options.get("encoder")
        if asked and asked != run.identity.encoder:
            raise InvalidSetting(
                f"Expected the encoder of {folder}, {run.identity.encoder}, found --encoder "
                f"{asked}; leave --encoder out."
            )
        options = {**options, "encoder": run.identity.encoder}
    templates = options.get("templates")
    if templates and tuple(templates) != before.templates:
        raise InvalidSetting(
            f"Expected the templates of {folder}, found others; leave --template out, or label "
            "without --like."
        )
    return {
        **options,
        "templates": before.templates,
        "temperature": before.temperature,
        "view": options.get("view") or view or None,
        "like": str(folder.absolute()),
    }


def _is(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether these are the arrays of `Anchored`, rather than of a mixture."""
    return "texts" in arrays


def _refuse(settings: LabelSettings, run: RunDirectory) -> None:
    if (settings.classes, settings.prompts) != (run.classes.labels, run.classes.prompts):
        others = [name for name in settings.classes if name not in run.classes.labels]
        found = ", ".join(others[:MOST_NAMED]) or "another order or other prompts"
        raise InvalidSetting(
            f"Expected the classes of {run.folder}, found {found}; leave --classes out, or label "
            "all images together with the new classes."
        )
    if settings.method not in (AUTO, Anchored.name):
        raise InvalidSetting(
            f"Expected --method auto or {Anchored.name} with --like, found {settings.method}; "
            "other methods keep nothing that new images can join."
        )
    if settings.batch != EVERYTHING:
        raise InvalidSetting(
            f"Expected the new images all at once with --like, found --batch {settings.batch}; "
            "label parts of them one after the other, each like the one before."
        )


def _corrected(run: RunDirectory, past: Past) -> Past:
    """The past with the corrections that were made after the run was solved."""
    answers = run.corrections()
    row_of = {name: row for row, name in enumerate(run.labels.file_name)}
    names = [name for name in answers if name in row_of and not run.labels.corrected[row_of[name]]]
    if not names:
        return past
    rows = np.array([row_of[name] for name in names], np.int64)
    corrections = indices_of([answers[name] for name in names], run.classes)
    labels: Int[np.ndarray, " image"] = run.labels.label[rows]
    seen = run.view()
    if seen is None:
        compared = np.concatenate([block for _, block in run.store().unit_blocks(rows)])
    else:
        compared = View.of(seen, run.labels.file_name).take(rows)
    return past.corrected(compared, labels, corrections)
