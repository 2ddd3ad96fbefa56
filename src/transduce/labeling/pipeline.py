"""From settings to a run directory: `run_labeling`, and `solve_again` with corrections."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from jaxtyping import Float32

from transduce.encoders.encoder import Encoder, ImageEncoder
from transduce.encoders.prompts import embed_classes
from transduce.errors import InvalidRun, NoImages, OutOfMemory, counted
from transduce.features.layout import RECORDS
from transduce.features.store import FeatureStore
from transduce.labeling import run_directory
from transduce.labeling.continuing import Learned
from transduce.labeling.embedder import Embedder
from transduce.labeling.executors import executors
from transduce.labeling.inputs import (
    LabelInputs,
    Listener,
    Machine,
    check_corrections,
    read_inputs,
)
from transduce.labeling.journal import REVIEWED
from transduce.labeling.problem import BestClasses, Posterior, Problem, Shots, Solution, keeps_all
from transduce.labeling.report.page import write_report
from transduce.labeling.run_directory import (
    RunDirectory,
    copy_store,
    hidden_name,
    new_run_folder,
    write_run,
)
from transduce.labeling.settings import AUTO, UNKNOWN, LabelSettings, read_settings, to_toml
from transduce.labeling.solving.solve import Workers, memory_needed, solve
from transduce.labeling.summary import summarize
from transduce.labeling.table import label_table
from transduce.labeling.views import View
from transduce.machine import network
from transduce.machine.atomic import rename_folder, replace_text, reserve
from transduce.methods import METHODS
from transduce.simplex.passes import Passes, in_threads

SUPPORT, SUPPORT_VIEW = "support", "support-view"
STATE = ".state.npz"  # of a large batch that is not solved yet
SOON_WRITTEN = 100_000  # images; the files of more take some seconds
Complete = Callable[[RunDirectory], object]


@dataclass(slots=True)
class Stopwatch:
    """The seconds of each stage of a run."""

    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=perf_counter)

    def lap(self, stage: str) -> None:
        """End a stage, which began when the one before it ended."""
        now = perf_counter()
        self.seconds[stage], self._last = now - self._last, now


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a run is written (`hidden`), and its name once it is whole (`folder`)."""

    hidden: Path
    folder: Path


def run_labeling(
    settings: LabelSettings,
    out: Path,
    *,
    encoder: Encoder | None = None,
    view_encoder: ImageEncoder | None = None,
    resume: bool = False,
    machine: Machine | None = None,
    listener: Listener | None = None,
    command: str = "",
    complete: Complete = lambda run: None,
) -> RunDirectory:
    """Label the images of the settings; returns a new run directory in `out`.

    `encoder` is used instead of loading `settings.encoder`, `view_encoder` instead of
    `settings.view`; `resume` continues a stopped run of the same source and encoder; `command` is
    kept in the summary; `complete` is called with the run before it gets its name, to write what
    else belongs to it, such as its report.
    """
    machine, listener = machine or Machine(), listener or Listener()
    out = Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow links
    settings = replace(settings, folder=settings.folder or str(Path.cwd()))
    stopwatch = Stopwatch()
    with network.offline(settings.offline), contextlib.chdir(settings.folder):
        learned = Learned.of(settings) if settings.like else None
        inputs = read_inputs(
            settings, view_loaded=view_encoder is not None, download=listener.download
        )
        compiling = _start_compiling(settings)
        given = encoder is not None, view_encoder is not None
        encoder = encoder or inputs.load_encoder(machine, listener.download)
        inputs.check_encoder(encoder.identity)
        view_encoder = view_encoder or inputs.load_view_encoder(machine, listener.download)
        if learned is not None:
            learned.check_encoder(inputs.store.identity if inputs.store else encoder.identity)
            classes = learned.class_embeddings
        else:
            classes = embed_classes(encoder, settings.names, settings.templates)
        stopwatch.lap("classes")
        listener.say(inputs.summary_line())
        stopped = _stopped(out, settings, listener) if resume else None
        if resume and stopped is None:
            listener.say(f"Nothing to resume in {out}: this is a new run.")
        with _workspace(out, settings, stopped) as workspace, executors(machine) as workers:
            embedder = Embedder(
                encoder=encoder,
                view_encoder=view_encoder,
                machine=machine,
                listener=listener,
                sent=given,
                together=workers.together,
            )
            problem = _embed(inputs, embedder, classes, workspace.hidden)
            stopwatch.lap("embedding")
            if compiling is not None:
                if compiling.is_alive():
                    listener.say(f"Compiling {settings.method}, at its first use ...")
                compiling.join()
                stopwatch.lap("compiling")
            if learned is not None:
                learned.check_view(problem.view)
                problem = replace(problem, past=learned.past)
            return _finish(
                problem,
                workspace,
                stopwatch,
                passes=workers.passes,
                listener=listener,
                command=command,
                complete=complete,
            )


def _start_compiling(settings: LabelSettings) -> threading.Thread | None:
    """Begin to compile the method, where it is compiled, while images are embedded."""
    if settings.method == AUTO:
        return None
    start = getattr(METHODS[settings.method], "start_compiling", None)
    return start() if start is not None else None


def solve_again(run: RunDirectory, corrections: Mapping[str, str]) -> RunDirectory:
    """Solve a run again with corrections, into a new run beside it; no image is opened.

    Parameters
    ----------
    run : RunDirectory
        The run to start from; the new one has the same settings and features.
    corrections : mapping of str to str
        File names of the run to labels of its classes or `unknown`, in addition to those that
        `run` had. Corrected images keep their label (`corrected` is true, they need no review) and
        are support for the others; `unknown` ones are left out of the batch.

    Returns
    -------
    RunDirectory
        The new run: transduce-002 after transduce-001.

    Raises
    ------
    InvalidFile, UnknownName
        For names that are not in the run, and labels that are no class of it.
    """
    stopwatch = Stopwatch()
    model, store = run.model(), run.store()
    names = run.labels.file_name
    fixed = check_corrections({**run.corrections(), **corrections}, names, run.classes)
    shots = Shots.none(store.dimension)
    if model.support_embeddings is not None and model.support_labels is not None:
        shots = Shots(model.support_embeddings, model.support_labels, model.support_view)
    seen = run.view()
    with _workspace(Path(run.folder).absolute().parent, run.settings) as workspace:
        reviewed = str(workspace.folder / REVIEWED)
        features = str(store.folder.absolute())
        problem = Problem(
            store=store,
            class_embeddings=model.class_embeddings,
            settings=replace(
                run.settings,
                features=features,
                view="" if seen is None else str(seen.folder.absolute()),
                support_from=reviewed if fixed else "",
            ),
            shots=shots,
            view=None if seen is None else View.of(seen, names),
            fixed=_rows(fixed, names),
            truth=run.labels.truth,
            past=Learned.of(run.settings).past if run.settings.like else None,
            image_paths=dict(zip(names, run.labels.image_path, strict=True)),
        )
        return _finish(problem, workspace, stopwatch, complete=write_report)


def _embed(
    inputs: LabelInputs,
    embedder: Embedder,
    classes: Float32[np.ndarray, "class feature"],
    folder: Path,
) -> Problem:
    """Embed what is to be embedded into stores in `folder`."""
    store, view = _stores(inputs, embedder, folder)
    names = store.keys() if view or inputs.truth or inputs.corrections else []
    truth = None
    if inputs.truth:
        truth = np.array([inputs.truth.get(name, UNKNOWN) for name in names], dtype=np.int64)
    return Problem(
        store=store,
        class_embeddings=classes,
        settings=inputs.settings,
        shots=_shots(inputs, embedder, folder, store.dimension),
        fixed=_rows(inputs.corrections, names),
        truth=truth,
        view=None if view is None else View.of(view, names),
        image_paths=inputs.image_paths,
        ignored=inputs.images.ignored if inputs.images else 0,
        videos=inputs.images.videos if inputs.images else 0,
    )


def _stores(
    inputs: LabelInputs, embedder: Embedder, folder: Path
) -> tuple[FeatureStore, FeatureStore | None]:
    """Return the features and the view of the images; what is no store yet is put in `folder`."""
    settings, store, view = inputs.settings, inputs.store, inputs.view
    own, own_view = folder / run_directory.FEATURES, folder / run_directory.VIEW
    if view is not None and inputs.imported_view:  # another program's file
        view = copy_store(view, own_view)
    if store is not None:
        return copy_store(store, own) if inputs.imported else store, view
    assert inputs.images is not None
    if settings.view and view is None:
        return embedder.embed_both(inputs.images, (own, own_view), "Embedding")
    return embedder.embed(inputs.images, own, "Embedding"), view


def _shots(inputs: LabelInputs, embedder: Embedder, folder: Path, dimension: int) -> Shots:
    """Embed the labeled images of --support."""
    if inputs.support is None:
        return Shots.none(dimension)
    seen = None
    if embedder.view_encoder is None:
        store = embedder.embed(inputs.support, folder / SUPPORT, "Support  ")
    else:
        folders = (folder / SUPPORT, folder / SUPPORT_VIEW)
        store, view = embedder.embed_both(inputs.support, folders, "Support  ")
        seen = View.of(view, store.keys()).take(np.arange(len(store)))
    labels = [inputs.support_labels[key] for key in store.keys()]  # noqa: SIM118
    return Shots(store.embeddings(), np.array(labels, dtype=np.int64), seen)


def _rows(corrections: Mapping[str, int], file_names: Sequence[str]) -> dict[int, int]:
    """Return the class index by row number; images that could not be read have no row."""
    rows = {name: row for row, name in enumerate(file_names)}
    return {rows[name]: index for name, index in corrections.items() if name in rows}


def _finish(
    problem: Problem,
    workspace: Workspace,
    stopwatch: Stopwatch,
    *,
    passes: Passes = in_threads,
    listener: Listener | None = None,
    command: str = "",
    complete: Complete = lambda run: None,
) -> RunDirectory:
    """Solve the problem, write the run directory, and give it its name."""
    listener = listener or Listener()
    for line in _plan_lines(problem):
        listener.say(line)
    with _scratch(workspace.hidden, problem) as probabilities:
        workers = Workers(passes=passes, state=workspace.hidden / STATE, say=listener.say)
        solution = _solve(problem, probabilities, listener, workers)
        stopwatch.lap("solving")
        if len(problem.store) > SOON_WRITTEN:
            listener.say("Writing   labels.csv, labels.parquet and the report")
        table = label_table(problem, solution)
        summary = summarize(problem, solution, table, seconds=stopwatch.seconds, command=command)
        write_run(workspace.hidden, problem, solution, table, summary)
        del solution, table, probabilities  # some hundred bytes an image; the run reads its own
    (workspace.hidden / STATE).unlink(missing_ok=True)
    for shots in (SUPPORT, SUPPORT_VIEW):
        shutil.rmtree(workspace.hidden / shots, ignore_errors=True)
    run = RunDirectory.load(workspace.hidden)
    complete(run)
    rename_folder(workspace.hidden, workspace.folder)
    return replace(run, folder=workspace.folder)


def _plan_lines(problem: Problem) -> list[str]:
    store, lines = problem.store, []
    unreadable, same = store.meta.skipped, store.meta.duplicates
    if unreadable or same:
        copies = counted(same, "exact duplicate")
        lines.append(f"  {unreadable:,} unreadable, {copies}")
    needed = memory_needed(len(store), problem.n_classes, problem.settings) / 1e6
    batches = len(problem.batches())
    how = "at once" if batches == 1 else f"in {batches:,} batches"
    lines.append(
        f"Solving   {counted(len(store), 'image')} x {problem.n_classes:,} classes {how}, "
        f"about {max(1, round(needed)):,} MB of memory"
    )
    return lines


@contextlib.contextmanager
def _scratch(folder: Path, problem: Problem) -> Iterator[Posterior]:
    """Yield room for the probabilities: those of all classes in a file, until they are written."""
    shape = (len(problem.store), problem.n_classes)
    if not keeps_all(*shape):
        yield BestClasses.empty(*shape)
        return
    path = folder / ".probabilities.npy"
    try:
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        reserve(path)
        yield array
        del array
    finally:
        path.unlink(missing_ok=True)


def _solve(
    problem: Problem, probabilities: Posterior, listener: Listener, workers: Workers
) -> Solution:
    try:
        with listener.bar("Solving  ", len(problem.store)) as progress:
            return solve(problem, probabilities, progress, workers)
    except MemoryError as error:
        size = max(1, len(problem.store) // (2 * len(problem.batches())))
        raise OutOfMemory(
            f"Expected room for {len(problem.store):,} images x {problem.n_classes:,} classes, "
            f"found too little memory; solve them in parts: --batch {size}"
        ) from error


@contextlib.contextmanager
def _workspace(
    out: Path, settings: LabelSettings, stopped: Path | None = None
) -> Iterator[Workspace]:
    """Yield the folders of a new run; on error, delete the hidden one unless work is in it."""
    folder = stopped or new_run_folder(out)
    hidden = hidden_name(folder)
    try:
        replace_text(hidden / run_directory.RUN, to_toml(settings))
        yield Workspace(hidden, folder)
    except BaseException as error:
        records = hidden / run_directory.FEATURES / RECORDS
        embedded = records.is_dir() and any(records.iterdir())
        embedded |= (hidden / STATE).exists()
        if not embedded or isinstance(error, NoImages):
            shutil.rmtree(hidden, ignore_errors=True)
        raise


def _stopped(out: Path, settings: LabelSettings, listener: Listener) -> Path | None:
    """Return the last run in `out` that was stopped on the same source with the same encoder."""
    wanted = _what(settings)
    for hidden in sorted(out.glob(".transduce-*"), reverse=True):
        if (hidden / run_directory.RUN).is_file():
            try:
                before = read_settings(hidden / run_directory.RUN)
            except InvalidRun as error:  # of another version
                listener.say(f"{hidden} is left as it is. {error}")
                continue
            if _what(before) == wanted:
                return hidden.with_name(hidden.name[1:])
    return None


def _what(settings: LabelSettings) -> tuple[str, ...]:
    """Return what the features of a run depend on."""
    return settings.source, settings.folder, settings.encoder, settings.features, settings.view
