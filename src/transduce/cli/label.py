"""`transduce label`: a folder of images and class names in, labels and a page to check them out."""

import os
import shlex
import sys
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from transduce.cli import options
from transduce.cli.console import STOPPED, WITH_PROBLEMS, note, say, say_json
from transduce.cli.progress import download_bar, progress_bar
from transduce.errors import InvalidSetting, counted

if TYPE_CHECKING:
    from transduce.encoders.class_names import ClassNames
    from transduce.features.embedding import Progress
    from transduce.labeling.inputs import Listener, Machine
    from transduce.labeling.run_directory import RunDirectory


Word = TypeVar("Word", bound=str)
ALL: tuple[Literal["all"], ...] = ("all",)
AUTO_OR_ALL: tuple[Literal["auto", "all"], ...] = ("auto", "all")


def label_command(
    context: typer.Context,
    source: Annotated[str | None, options.SOURCE_ARGUMENT] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Class names with commas between.")
    ] = None,
    classes_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Classes in a .txt, .csv, .json or .yaml.")
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='Such as "a photo of a {}."; repeat it for several.'),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Such as clip or open_clip:ViT-B-32/openai. [default: clip]"
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="Features, not SOURCE: a store, also s3://..., or .npz, .npy, .parquet, .pt.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The images of --features, to see and review them."),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            metavar="ID|STORE",
            help="Another encoder (dinov2) or its features, to compare images.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="auto, or one of: transduce list methods.")
    ] = "auto",
    classes_present: Annotated[
        str,
        typer.Option(metavar="N", help="How many of the classes are there: a number, auto or all."),
    ] = "auto",
    iterations: Annotated[
        int, typer.Option(metavar="N", help="Most steps of --method; 0: as published.")
    ] = 0,
    batch: Annotated[
        str, typer.Option(metavar="N", help="How many images are solved jointly, or all.")
    ] = "all",
    support: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Labeled images: a sub-folder a class.")
    ] = None,
    support_from: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Corrections of images of SOURCE: file_name, label."),
    ] = None,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Images far from every class become unknown.")
    ] = False,
    min_score: Annotated[
        float, typer.Option(metavar="P", help="Images with a lower score become unknown.")
    ] = 0.0,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV|folders",
            help="Right labels (file_name, label), or folders: the sub-folders are named so.",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Join an earlier run: its classes and what it learned."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN.TOML", help="Do a run again, with its settings.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the run directories go.")
    ] = Path("out"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="How batches are drawn.")] = 0,
    device: options.Device = "cpu",
    batch_size: options.BatchSize = 32,
    workers: options.Workers = 0,
    executor: options.Executor = options.ExecutorName.local,
    address: options.Address = None,
    offline: options.Offline = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print how the labels came about, too.")
    ] = False,
    as_json: options.SummaryAsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Label images jointly, and say which labels to check.

    Exit 0: done. 1: done, but more than 5 % were unreadable. 2: bad input. 130: stopped by Ctrl-C.
    """
    from transduce.labeling.continuing import options_like
    from transduce.labeling.pipeline import run_labeling
    from transduce.labeling.report.page import write_report
    from transduce.labeling.settings import FROM_STORE, LabelSettings, read_settings

    if run is not None:
        if source or classes or classes_file or features or like:
            raise InvalidSetting("Expected --run alone, found SOURCE, classes or --like beside it.")
        settings = read_settings(run)
    else:
        given = {
            **context.params,  # each option that is a setting has the setting's name
            "source": _source(source, features),
            "encoder": encoder or (FROM_STORE if features else None),
            "templates": template or None,
            "classes_present": _number("--classes-present", classes_present, AUTO_OR_ALL),
            "batch": _number("--batch", batch, ALL),
        }
        if like is not None:
            given = options_like(like, given)
        settings = LabelSettings.of(_names(classes, classes_file, like), given)
    try:
        labeled = run_labeling(
            settings,
            out,
            resume=resume,
            machine=_machine(device, batch_size, workers, executor, address),
            listener=_listener(quiet=quiet),
            command=shlex.join(["transduce", *sys.argv[1:]]),
            complete=write_report,
        )
    except KeyboardInterrupt:
        note("Stopped. What was done is kept; go on with the same command and --resume.")
        raise typer.Exit(STOPPED) from None
    _print_summary(labeled, quiet=quiet, as_json=as_json, details=details)
    summary = labeled.summary
    files = summary.skipped + summary.images
    if summary.skipped > options.MOST_SKIPPED * files:
        if not quiet:
            note(
                f"Exit code {WITH_PROBLEMS}: {summary.skipped:,} of {counted(files, 'file')} could "
                "not be read, more than 5 %; the labels of the others are whole."
            )
        raise typer.Exit(WITH_PROBLEMS)


def _names(classes: str | None, classes_file: Path | None, like: Path | None) -> "ClassNames":
    from transduce.encoders.class_names import class_names_from, read_class_names
    from transduce.labeling.run_directory import RunDirectory

    if like is not None and classes is None and classes_file is None:
        return RunDirectory.load(like).classes

    if classes is not None and classes_file is None:
        return class_names_from(classes)
    if classes is None and classes_file is not None:
        return read_class_names(classes_file)
    given = "neither" if classes is None else "both"
    raise InvalidSetting(
        f"Expected --classes or --classes-file, found {given}; write --classes cat,dog,fox."
    )


def _source(source: str | None, features: str | None) -> str:
    if (source is None) == (features is None):
        given = "neither" if source is None else "both"
        raise InvalidSetting(f"Expected a SOURCE of images or --features STORE, found {given}.")
    return source or ""


def _number(option: str, text: str, words: tuple[Word, ...]) -> int | Word:
    for word in words:
        if text == word:
            return word
    try:
        return int(text)
    except ValueError:
        raise InvalidSetting(
            f"Expected {option} to be a whole number or {' or '.join(words)}, found {text!r}."
        ) from None


def _machine(
    device: str,
    batch_size: int,
    workers: int,
    executor: options.ExecutorName,
    address: str | None,
) -> "Machine":
    from transduce.features.embedding import Resources
    from transduce.labeling.inputs import Machine

    return Machine(
        device=device,
        batch_size=batch_size,
        resources=Resources(workers),
        ray=executor is options.ExecutorName.ray,
        address=address,
    )


def _listener(*, quiet: bool) -> "Listener":
    from transduce.labeling.inputs import Listener

    def bar(title: str, total: int) -> "AbstractContextManager[Progress]":
        return progress_bar(title, total, quiet=quiet or not total)

    if quiet:
        return Listener()
    return Listener(say=note, bar=bar, download=partial(download_bar, quiet=False))


def _print_summary(run: "RunDirectory", *, quiet: bool, as_json: bool, details: bool) -> None:
    from transduce.cli.label_summary import summary_lines
    from transduce.labeling.views import view_hint
    from transduce.machine.atomic import to_plain

    if as_json:
        say_json({"run": os.path.relpath(run.folder), **to_plain(run.summary)})
    elif not quiet:
        say(*summary_lines(run, details=details))
        hint = view_hint(run.settings)
        if hint:
            note(hint)
