"""What to type after a review; and the classes that a reviewer missed, for the next run."""

import shlex
from collections import Counter
from collections.abc import Mapping

from transduce.encoders.class_names import readable
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.labeling.files import write_corrections
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import FEATURES, RunDirectory
from transduce.machine.atomic import replace_csv

NEW_CLASSES = "classes-with-new.csv"
NEW_ANSWERS = "reviewed-with-new.csv"


def new_classes(journal: Journal) -> Mapping[str, int]:
    """Return how many images each suggested class has."""
    return dict(Counter(journal.new_classes.values()))


def write_new_classes(run: RunDirectory, journal: Journal) -> None:
    """Write the classes with the new ones, and the answers with them as labels, into the run."""
    new = journal.new_classes
    prompts = {name: readable(name) for name in new.values()}
    prompts |= dict(zip(run.classes.labels, run.classes.prompts, strict=True))
    order = dict.fromkeys([*run.classes.labels, *prompts])
    rows = [(label, prompts[label]) for label in order]
    replace_csv(run.folder / NEW_CLASSES, ("class", "prompt"), rows)
    write_corrections(run.folder / NEW_ANSWERS, {**journal.review, **new})


def command_to_label(run: RunDirectory, journal: Journal) -> str:
    """Return the command that labels again with the new classes; "" where there is none."""
    if not journal.new_classes:
        return ""
    templates = run.settings.templates
    if templates == (DEFAULT_TEMPLATE,):
        templates = ()
    features = run.folder / FEATURES
    source = f"--features {shlex.quote(str(features))}"
    if not features.is_dir():
        settings = run.settings
        source = f"--features {shlex.quote(str(settings.address(settings.features)))}"
    return (
        f"transduce label {source} "
        f"--classes-file {shlex.quote(str(run.folder / NEW_CLASSES))} "
        + "".join(f"--template {shlex.quote(template)} " for template in templates)
        + f"--support-from {shlex.quote(str(run.folder / NEW_ANSWERS))} "
        f"--out {shlex.quote(str(run.folder.parent))}"
    )


def next_command(run: RunDirectory, *, audit: bool) -> str:
    """Return what to type after the last image."""
    folder = shlex.quote(str(run.folder))
    return f"transduce certify {folder}" if audit else f"transduce review {folder} --audit 60"


def no_images(run: RunDirectory) -> str:
    """Return what to do about a run that has only the features of its images, or ""."""
    if any(run.labels.image_path):
        return ""
    return (
        "This run has only the features of its images, so none can be shown; if you have them: "
        f"transduce review {shlex.quote(str(run.folder))} --images FOLDER"
    )
