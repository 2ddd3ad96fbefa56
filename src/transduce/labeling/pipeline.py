"""`label`: from settings to a run directory."""

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from transduce.atomic import replace_text
from transduce.errors import InvalidSetting, NoImages, OutOfMemory
from transduce.features.layout import RECORDS
from transduce.features.store import FeatureStore
from transduce.images.entries import Listing
from transduce.images.sources import find_images
from transduce.labeling import inputs, run_directory
from transduce.labeling.assembling import read_truth, summary_of, table_of
from transduce.labeling.files import read_labeled
from transduce.labeling.inputs import Listener, Machine
from transduce.labeling.run_directory import RunDirectory, hidden_name, new_run_folder
from transduce.labeling.settings import AUTO, LabelSettings, read_settings, to_toml
from transduce.labeling.shots import correction_rows, folder_labels
from transduce.labeling.solving import Problem, Solution, memory_needed, solve
from transduce.labeling.table import UNKNOWN_LABEL
from transduce.labeling.writing import publish, write_run
from transduce.methods import METHODS

SUPPORT = "support"


def label(
    settings: LabelSettings,
    out: Path,
    *,
    resume: bool = False,
    machine: Machine | None = None,
    listener: Listener | None = None,
    command: str = "",
) -> RunDirectory:
    """Label the images of the settings; the answer is a new run directory in `out`."""
    machine, listener = machine or Machine(), listener or Listener()
    out = Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow links
    settings = replace(settings, folder=settings.folder or str(Path.cwd()))
    clock = {"start": perf_counter()}
    with contextlib.chdir(settings.folder):
        found = None if settings.features else find_images(settings.source)
        corrections = _refuse_early(settings, found)
        encoder = inputs.encoder_of(settings, machine)
        texts = inputs.class_embeddings(encoder, settings)
        clock["classes"] = perf_counter()
        store = inputs.given_store(settings, encoder) if settings.features else None
        _tell_found(found, store, listener)
        with workspace(out, settings, resume=resume) as (hidden, folder):
            if store is None:
                assert found is not None
                store = inputs.embed(
                    found, hidden / run_directory.FEATURES, encoder, machine, listener, "Embedding"
                )
            shots = inputs.support_shots(settings, hidden / SUPPORT, encoder, machine, listener)
            clock["embedding"] = perf_counter()
            problem = Problem(
                store=store,
                class_embeddings=texts,
                settings=settings,
                shots=shots,
                fixed=correction_rows(corrections, store.keys(), settings.names),
            )
            return finish(problem, hidden, folder, corrections, listener, clock, command)


def finish(
    problem: Problem,
    hidden: Path,
    folder: Path,
    corrections: dict[str, str],
    listener: Listener,
    clock: dict[str, float],
    command: str,
) -> RunDirectory:
    """Solve the problem and write the run directory."""
    settings, classes = problem.settings, problem.settings.names
    for line in _plan_lines(problem):
        listener.say(line)
    with _scratch(hidden, problem) as probabilities:
        solution = _solve(problem, probabilities, listener)
        clock["solving"] = perf_counter()
        table = table_of(problem, solution, classes)
        summary = summary_of(
            problem, solution, table, classes, seconds=_durations(clock), command=command
        )
        write_run(hidden, problem, solution, table, summary, classes, corrections)
    if settings.support:
        shutil.rmtree(hidden / SUPPORT, ignore_errors=True)
    publish(hidden, folder)
    return RunDirectory.load(folder)


def _refuse_early(settings: LabelSettings, found: Listing | None) -> dict[str, str]:
    """What can be known to be wrong before any image is opened; returns the corrections."""
    given = settings.support or settings.support_from
    if settings.method != AUTO and METHODS[settings.method].support == "needed" and not given:
        raise InvalidSetting(
            f"Expected support for {settings.method}, found none; give labeled images with "
            "--support, or choose another --method."
        )
    if UNKNOWN_LABEL in settings.classes and (settings.allow_unknown or settings.min_score):
        raise InvalidSetting(
            f"Expected no class called {UNKNOWN_LABEL!r} together with --allow-unknown or "
            "--min-score, found one; rename it."
        )
    if settings.support:
        shots = find_images(str(settings.path(settings.support)))
        folder_labels([entry.key for entry in shots.entries], settings.names)
    keys = [entry.key for entry in found.entries] if found is not None else None
    if settings.truth:
        read_truth(settings, keys)
    if not settings.support_from:
        return {}
    corrections = read_labeled(settings.path(settings.support_from))
    if keys is not None:
        correction_rows(corrections, keys, settings.names)
    return corrections


def _tell_found(found: Listing | None, store: FeatureStore | None, listener: Listener) -> None:
    if found is not None:
        ignored = f" ({found.ignored:,} other files ignored)" if found.ignored else ""
        listener.say(f"Found {len(found.entries):,} images in {found.source}{ignored}")
    if store is not None:
        listener.say(f"Found {len(store):,} images' features in {store.folder}")


def _plan_lines(problem: Problem) -> list[str]:
    store, settings = problem.store, problem.settings
    lines = []
    unreadable, same = store.meta.skipped, store.meta.duplicates
    if unreadable or same:
        lines.append(f"  {unreadable:,} unreadable, {same:,} exact duplicates")
    needed = memory_needed(len(store), problem.n_classes, settings) / 1e6
    batches = len(problem.batches())
    how = "at once" if batches == 1 else f"in {batches:,} batches"
    lines.append(
        f"Solving   {len(store):,} images x {problem.n_classes:,} classes {how}, "
        f"about {max(1, round(needed)):,} MB of memory"
    )
    return lines


@contextlib.contextmanager
def _scratch(folder: Path, problem: Problem) -> Iterator[np.ndarray]:
    """The probabilities of the run, in a file until they are in labels.parquet."""
    path = folder / ".probabilities.npy"
    shape = (len(problem.store), problem.n_classes)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    try:
        yield array
    finally:
        del array
        path.unlink(missing_ok=True)


def _solve(problem: Problem, probabilities: np.ndarray, listener: Listener) -> Solution:
    try:
        with listener.bar("Solving  ", len(problem.store)) as progress:
            before = 0

            def told(done: int, choice: object, batch: object) -> None:
                nonlocal before
                progress(done - before)
                before = done

            return solve(problem, probabilities, told)
    except MemoryError as error:
        size = max(1, len(problem.store) // (2 * len(problem.batches())))
        raise OutOfMemory(
            f"Expected room for {len(problem.store):,} images x {problem.n_classes:,} classes, "
            f"found too little memory; solve them in parts: --batch {size}"
        ) from error


def _durations(clock: dict[str, float]) -> dict[str, float]:
    stages = list(clock)
    return {stage: clock[stage] - clock[before] for before, stage in itertools.pairwise(stages)}


@contextlib.contextmanager
def workspace(
    out: Path, settings: LabelSettings, *, resume: bool = False
) -> Iterator[tuple[Path, Path]]:
    """(hidden folder, its name to be); what a failed run leaves is kept only if it embedded."""
    folder = (_stopped(out, settings) if resume else None) or new_run_folder(out)
    hidden = hidden_name(folder)
    replace_text(hidden / run_directory.RUN, to_toml(settings))
    try:
        yield hidden, folder
    except BaseException as error:
        records = hidden / run_directory.FEATURES / RECORDS
        embedded = records.is_dir() and any(records.iterdir())
        if not embedded or isinstance(error, NoImages):
            shutil.rmtree(hidden, ignore_errors=True)
        raise


def _stopped(out: Path, settings: LabelSettings) -> Path | None:
    """The last run in `out` that was stopped on its way with the same source and encoder."""
    for hidden in sorted(out.glob(".transduce-*"), reverse=True):
        if not (hidden / run_directory.RUN).is_file():
            continue
        before = read_settings(hidden / run_directory.RUN)
        if (before.source, before.folder, before.encoder) == (
            settings.source, settings.folder, settings.encoder,
        ):  # fmt: skip
            return hidden.with_name(hidden.name[1:])
    return None
