"""`transduce export`: the labels of a run in the formats that other tools read."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import say
from transduce.errors import InvalidSetting


class LinkName(enum.StrEnum):
    """How images get into an exported folder."""

    symlink = "symlink"
    hardlink = "hardlink"
    copy = "copy"


def export_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="csv, jsonl, parquet, imagefolder, fiftyone, label-studio or cleanlab.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A file or folder that is not there yet. [beside RUN]"),
    ] = None,
    link: Annotated[
        LinkName, typer.Option(help="For imagefolder: how the images get there.")
    ] = LinkName.symlink,
    without_review: Annotated[
        bool, typer.Option("--without-review", help="Leave out the answers given in reviews.")
    ] = False,
) -> None:
    """Write the labels of a run for another tool, with all answers of reviews and audits.

    transduce export out/transduce-001 --to csv
    """
    from transduce.labeling.answers import answered_labels
    from transduce.labeling.exports import EXPORTERS, SUFFIXES, export_imagefolder
    from transduce.labeling.run_directory import RunDirectory

    exporter = EXPORTERS[to]
    labels = answered_labels(RunDirectory.load(run), review=not without_review)
    folder = Path(run).absolute()
    target = out or folder.with_name(f"{folder.name}-{to}{SUFFIXES.get(to, '')}")
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise InvalidSetting(
            f"Expected nothing at {target} yet, found something; choose another --out."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    if to == "imagefolder":
        written = export_imagefolder(labels, target, link.value)
    else:
        written = exporter(labels, target)
    say(f"Wrote {target}   {written}")
    if labels.answers:
        answers = f"{len(labels.answers):,} answer{'' if len(labels.answers) == 1 else 's'}"
        say(f"With {answers} of people; --without-review leaves them out.")
