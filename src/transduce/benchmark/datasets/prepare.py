"""Prepare a dataset: what each of its files still takes, and doing what a program can do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transduce.benchmark.datasets.card import Card, Download
from transduce.benchmark.datasets.download import DownloadProgress, check_md5, download_file
from transduce.benchmark.datasets.unpack import refuse_nonempty, unpack
from transduce.benchmark.datasets.verify import check_index
from transduce.errors import MissingData, TransduceError

DOWNLOADS = "downloads"

Action = Literal["nothing", "unpack", "download", "by hand"]


@dataclass(frozen=True)
class PreparationStep:
    """One file of a card: what it becomes, where it lies as downloaded, and what is to be done."""

    download: Download
    target: Path
    archive: Path
    action: Action


def steps(card: Card, data: Path) -> list[PreparationStep]:
    """Return what is still to be done about each file of the card, in order."""
    return [_step(card, download, data) for download in card.downloads]


def _step(card: Card, download: Download, data: Path) -> PreparationStep:
    target = data / card.folder / download.target
    archive = data / DOWNLOADS / card.name / download.file
    action: Action = "download" if download.url else "by hand"
    needed = card.needs if download.target == "." else (download.target,)
    if all((data / card.folder / part).exists() for part in needed):
        action = "nothing"
    elif archive.exists() and (download.takes or target.name == archive.name):
        action = "unpack"
    return PreparationStep(download, target, archive, action)


def carry_out(
    card: Card, step: PreparationStep, progress: DownloadProgress = lambda done, total: None
) -> None:
    """Download and unpack one file; if it is not the right one, refuse it and leave nothing."""
    if step.action == "nothing":
        return
    if step.action == "by hand":
        raise MissingData(f"Expected {step.archive}, found none; {by_hand(step)}")
    if step.download.takes:
        refuse_nonempty(step.target)  # before a long download, not after
    if step.action == "download":
        download_file(step.download.url, step.archive, md5=step.download.md5, progress=progress)
    elif step.download.md5:
        check_md5(step.archive, step.download.md5)
    if step.download.takes:
        unpack(step.archive, step.download.takes, step.target)
        return
    if step.download.target == card.index:
        try:
            check_index(card, step.archive)
        except TransduceError:
            step.archive.unlink()
            raise
    step.target.parent.mkdir(parents=True, exist_ok=True)
    step.archive.replace(step.target)


def by_hand(step: PreparationStep) -> str:
    """Return what a person is to do about a file."""
    where = step.download.page or step.download.url
    if step.download.takes:
        return f"get {step.download.file} from {where} and put it at {step.archive}"
    return f"get {step.download.file} from {where} and make {step.target} of it"
