"""Solving a run again with corrections: the corrected images become shots of their classes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from transduce.labeling import run_directory
from transduce.labeling.files import read_labeled
from transduce.labeling.inputs import Listener
from transduce.labeling.pipeline import finish, workspace
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.shots import Shots, correction_rows
from transduce.labeling.solving import Problem


def solve_again(run: RunDirectory, corrections: Mapping[str, str]) -> RunDirectory:
    """A new run beside `run` (transduce-002 after transduce-001), with the same settings.

    `corrections` maps file names of the run to labels of its classes or `unknown`; they are added
    to those that `run` had, and win over them. Corrected images keep their label (`corrected` is
    true, they need no review) and are support for the others, together with the shots of
    --support; `unknown` ones are left out of the batch. The features are those of `run`, so that
    no image is opened. Names that are not in the run, and labels that are no class of it, are
    refused (InvalidFile, UnknownName).
    """
    clock = {"start": perf_counter()}
    settings, model = run.settings, run.model()
    before = read_labeled(settings.path(settings.support_from)) if settings.support_from else {}
    merged = {**before, **run.corrections(), **corrections}
    fixed = correction_rows(merged, run.labels.file_name, run.classes)
    store = run.store()
    with workspace(Path(run.folder).absolute().parent, settings) as (hidden, folder):
        settings = replace(
            settings,
            features=str(store.folder.absolute()),
            support_from=str(folder / run_directory.REVIEWED) if merged else "",
        )
        shots = Shots.none(store.dimension)
        if model.support_embeddings is not None and model.support_labels is not None:
            shots = Shots(model.support_embeddings, model.support_labels)
        problem = Problem(
            store=store,
            class_embeddings=model.class_embeddings,
            settings=settings,
            shots=shots,
            fixed=fixed,
        )
        return finish(problem, hidden, folder, merged, Listener(), clock, "")
