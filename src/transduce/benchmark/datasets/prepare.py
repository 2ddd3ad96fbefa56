"""From nothing to a dataset in its place: what is to be done, and doing what can be done."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transduce.benchmark.datasets.card import Card, Download
from transduce.benchmark.datasets.download import Progress, check_md5, fetch
from transduce.benchmark.datasets.unpack import refuse_taken, unpack
from transduce.benchmark.datasets.verify import check_index
from transduce.errors import MissingData, TransduceError

DOWNLOADS = "downloads"

Action = Literal["nothing", "unpack", "download", "by hand"]


@dataclass(frozen=True)
class Step:
    """One file of a card: where it goes, and what that takes."""

    download: Download
    place: Path
    archive: Path  # where the file as downloaded lies, or should be put
    action: Action


def steps(card: Card, data: Path) -> list[Step]:
    """What each file of the card still takes, in order."""
    return [_step(card, download, data) for download in card.downloads]


def _step(card: Card, download: Download, data: Path) -> Step:
    place = data / card.folder / download.place
    archive = data / DOWNLOADS / card.name / download.file
    action: Action = "download" if download.url else "by hand"
    needed = card.needs if download.place == "." else (download.place,)
    if all((data / card.folder / part).exists() for part in needed):
        action = "nothing"
    elif archive.exists() and (download.takes or place.name == archive.name):
        action = "unpack"
    return Step(download, place, archive, action)


def carry_out(card: Card, step: Step, progress: Progress = lambda done, total: None) -> None:
    """Download and unpack one file; refuse it, and leave nothing, if it is not the right one."""
    if step.action == "nothing":
        return
    if step.action == "by hand":
        raise MissingData(f"Expected {step.archive}, found none; {by_hand(step)}")
    if step.download.takes:
        refuse_taken(step.place)  # before a long download, not after
    if step.action == "download":
        fetch(step.download.url, step.archive, md5=step.download.md5, progress=progress)
    elif step.download.md5:
        check_md5(step.archive, step.download.md5)
    if step.download.takes:
        unpack(step.archive, step.download.takes, step.place)
        return
    if step.download.place == card.index:
        try:
            check_index(card, step.archive)
        except TransduceError:
            step.archive.unlink()
            raise
    step.place.parent.mkdir(parents=True, exist_ok=True)
    step.archive.replace(step.place)


def by_hand(step: Step) -> str:
    """What a person does about a file."""
    where = step.download.page or step.download.url
    if step.download.takes:
        return f"get {step.download.file} from {where} and put it at {step.archive}"
    return f"get {step.download.file} from {where} and make {step.place} of it"
