"""`transduce data`: which datasets are here, whether they are complete, how to get them."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.console import WITH_PROBLEMS, complain, folder_name, note, say, say_json
from transduce.machine.atomic import to_plain

if TYPE_CHECKING:
    from transduce.benchmark.datasets.card import Card
    from transduce.benchmark.datasets.prepare import PreparationStep
    from transduce.benchmark.datasets.verify import DatasetStatus

data = typer.Typer(
    help="Datasets of the benchmark: what is here, whether it is whole, how to get it.",
    no_args_is_help=True,
)

Root = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="TRANSDUCE_DATA",
        metavar="DIR",
        help="Where the datasets lie, laid out as CoOp's DATASETS.md does.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A dataset of `transduce data status`.")]
NameOrFolder = Annotated[
    str, typer.Argument(metavar="NAME", help="A dataset, or folder:PATH of class sub-folders.")
]


@data.command("status")
def data_status_command(root: Root = Path("data"), as_json: Json = False) -> None:
    """List the datasets, and which of their parts are in the data folder."""
    from transduce.benchmark.datasets.card import CARDS
    from transduce.benchmark.datasets.verify import dataset_status

    statuses = [dataset_status(card, root) for card in CARDS.values()]
    if as_json:
        say_json({"data": str(root), "datasets": [_described(status) for status in statuses]})
        return
    say(f"{'dataset':<14}{'classes':>8}{'train':>11}{'val':>8}{'test':>8}  in {folder_name(root)}")
    for status in statuses:
        say(_line(status))
    here = sum(status.state == "present" for status in statuses)
    say(f"{here} of {len(statuses)} are here. Next: transduce data prepare NAME --data {root}")


def _line(status: "DatasetStatus") -> str:
    card = status.card
    counts = [f"{card.counts[s]:,}" if s in card.counts else "-" for s in ("train", "val", "test")]
    state: str = status.state
    if status.state == "incomplete":
        state = f"no {status.missing[0]}"
        if len(status.missing) > 1:
            state += f" (+{len(status.missing) - 1})"
    return (
        f"{card.name:<14}{card.classes:>8,}{counts[0]:>11}{counts[1]:>8}{counts[2]:>8}  "
        f"{textwrap.shorten(state, 29, placeholder=' ...')}"
    )


def _described(status: "DatasetStatus") -> dict[str, Any]:
    card = to_plain(status.card)
    names = ("classes", "counts", "template", "class_names", "license", "homepage")
    return {
        "name": card["name"],
        "title": card["title"],
        "state": status.state,
        "folder": str(status.folder),
        "missing": list(status.missing),
        **{name: card[name] for name in names},
    }


@data.command("verify")
def data_verify_command(
    name: NameOrFolder, root: Root = Path("data"), as_json: Json = False
) -> None:
    """Check that every image of a dataset's splits is there. Exit 1 if anything is wrong."""
    from transduce.benchmark.datasets.verify import verify_dataset

    checked = verify_dataset(name, root)
    if as_json:
        facts = {"name": checked.name, "images": str(checked.root), "classes": checked.classes}
        say_json({**facts, "counts": checked.counts, "problems": list(checked.problems)})
    else:
        counted = ", ".join(f"{count:,} {split}" for split, count in checked.counts.items())
        say(f"{checked.name}: {checked.classes:,} classes; {counted or 'no images'}")
        say(*[f"  {problem}" for problem in checked.problems] or ["Everything is in order."])
        if not checked.problems:
            say(f"Next: transduce embed {checked.root} --out STORE")
    if checked.problems:
        raise typer.Exit(WITH_PROBLEMS)


@data.command("prepare")
def data_prepare_command(
    name: Name,
    root: Root = Path("data"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
) -> None:
    """Download what can be downloaded, and say exactly what to do about the rest.

    Downloads go on where they stopped, and are checked before they get their names. Exit 1
    while something is still missing.
    """
    from transduce.benchmark.datasets.card import CARDS
    from transduce.benchmark.datasets.prepare import steps

    card = CARDS[name]
    say(f"{card.title} in {folder_name(root / card.folder)}", f"  license   {card.license}")
    _note(card.note)
    done = [_prepare(card, step, dry_run) for step in steps(card, root)]
    if not all(done):
        say(f"Then: transduce data prepare {name} --data {root}")
        raise typer.Exit(WITH_PROBLEMS)
    say(f"Next: transduce data verify {name} --data {root}")


def _prepare(card: "Card", step: "PreparationStep", dry_run: bool) -> bool:
    """Do one step, or say how; return whether its part is there."""
    from transduce.benchmark.datasets.prepare import carry_out
    from transduce.cli.progress import bytes_fetched
    from transduce.errors import TransduceError

    file = step.download.file
    if step.action == "nothing":
        say(f"have  {step.target}")
        return True
    say(f"{'take' if step.action == 'unpack' else 'get '}  {file}{_size(step)}")
    if step.action == "by hand" or dry_run:
        _explain(step)
        return False
    try:
        carry_out(card, step, bytes_fetched(file))
    except TransduceError as error:
        complain(str(error))
        _explain(step)
        return False
    say(f"made  {step.target}")
    if step.archive.exists():
        note(f"{step.archive} is no longer needed.")
    return True


def _explain(step: "PreparationStep") -> None:
    download = step.download
    if step.action != "unpack":
        where = download.url if step.action == "download" else download.page
        say(f"  from      {where}")
        if download.url and download.page:
            say(f"  or        {download.page}")
        if download.takes:
            say(f"  save as   {step.archive}")
        for dead in download.dead:
            say(f"  not from  {dead}: dead")
    say(f"  becomes   {step.target}")
    say(f"  checksum  {f'MD5 {download.md5}' if download.md5 else 'none known'}")
    _note(download.note)


def _size(step: "PreparationStep") -> str:
    return f"  ({step.download.size})" if step.download.size else ""


def _note(text: str) -> None:
    first = "  note      "
    if text:
        say(*textwrap.wrap(text, 80, initial_indent=first, subsequent_indent=" " * len(first)))
