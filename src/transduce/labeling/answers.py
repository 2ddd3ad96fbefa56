"""The labels of a run with the answers that people gave since: what every export writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from transduce.encoders.class_names import ClassNames, readable
from transduce.labeling.files import Extra, labels_of
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, UNKNOWN_LABEL, indices_of
from transduce.labeling.table import LabelTable
from transduce.labeling.trust.certificate import read_certificate
from transduce.labeling.trust.class_sets import MEMBERS, read_sets

Sets = tuple[tuple[str, ...], ...]  # of class names, one for each image


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredLabels:
    """A run's labels as they are now.

    Parameters
    ----------
    run : RunDirectory
        The run as it was solved.
    classes : ClassNames
        The classes of the run, then those that answers added.
    table : LabelTable
        The labels; an answered image has its answer, a score of 1 and no reason to be checked.
    answers : mapping of int to int
        The class index of each answered row, UNKNOWN for none of the classes.
    certified : array of bool, optional
        Which rows the run's certificate vouches for; None if there is no valid certificate.
    sets : tuple of tuple of str, optional
        The classes that hold the truth of each image, as often as was asked of `transduce certify
        --sets`; of an answered image the answer alone. None if there are no sets.
    """

    run: RunDirectory
    classes: ClassNames
    table: LabelTable
    answers: Mapping[int, int]
    certified: Bool[np.ndarray, " image"] | None = None
    sets: Sets | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def names(self) -> list[str]:
        """The label of each image, `unknown` for none of the classes."""
        return labels_of(self.table.label, self.classes)

    def extra_columns(self) -> dict[str, Extra]:
        """Return the columns that came after the run: `certified` (bool) and `classes` (sets)."""
        columns = {"certified": self.certified, MEMBERS: self.sets}
        return {name: values for name, values in columns.items() if values is not None}

    def extra_of(self, row: int) -> dict[str, bool | list[str]]:
        """Return the entries of a row in `extra_columns`, as JSON has them."""
        extra: dict[str, bool | list[str]] = {}
        if self.certified is not None:
            extra["certified"] = bool(self.certified[row])
        if self.sets is not None:
            extra[MEMBERS] = list(self.sets[row])
        return extra

    def probability_blocks(self) -> Iterator[tuple[int, Float32[np.ndarray, "row class"]]]:
        """Yield (first row, probabilities) block by block; an answered row is sure of its class."""
        added = len(self.classes) - len(self.run.classes)
        answered: np.ndarray = np.array(sorted(self.answers), dtype=np.int64)
        for start, given in self.run.probability_blocks():
            block = given
            if added:
                block = np.pad(block, ((0, 0), (0, added)))
            inside = answered[(answered >= start) & (answered < start + len(block))]
            if inside.size:
                block = block if added else block.copy()
                for row in inside:
                    index = self.answers[int(row)]
                    block[row - start] = 1.0 / len(self.classes) if index == UNKNOWN else 0.0
                    if index != UNKNOWN:
                        block[row - start, index] = 1.0
            yield start, block


def answered_labels(run: RunDirectory, *, review: bool = True) -> AnsweredLabels:
    """Return the labels of `run` with the answers of its reviews and audits applied.

    Parameters
    ----------
    run : RunDirectory
        The run.
    review : bool
        False leaves the answers out: the labels as they were solved.

    Returns
    -------
    AnsweredLabels
        The labels. Where an image has an answer in a review and in an audit, the audit's counts,
        because it was given to this one image and not to a group.
    """
    given = _answers(run) if review else {}
    known = {*run.classes.labels, UNKNOWN_LABEL}
    added = [label for label in dict.fromkeys(given.values()) if label not in known]
    classes = run.classes
    if added:
        classes = ClassNames(
            (*classes.labels, *added),
            (*classes.prompts, *map(readable, added)),
        )
    rows = {name: row for row, name in enumerate(run.labels.file_name)} if given else {}
    given = {name: label for name, label in given.items() if name in rows}
    indices = indices_of(list(given.values()), classes)
    answers = {rows[name]: int(index) for name, index in zip(given, indices, strict=True)}
    return AnsweredLabels(
        run=run,
        classes=classes,
        table=_applied(run.labels, answers),
        answers=answers,
        certified=_certified(run),
        sets=_sets(run, classes, answers),
    )


def _answers(run: RunDirectory) -> dict[str, str]:
    """Return the label of each answered file."""
    journal = Journal.open(run.folder)
    return {**journal.review, **journal.new_classes, **journal.audit}


def _certified(run: RunDirectory) -> Bool[np.ndarray, " image"] | None:
    """Return which rows are certified; None without a valid certificate."""
    certificate = read_certificate(run)
    return None if certificate is None or certificate.void else certificate.certified


def _sets(run: RunDirectory, classes: ClassNames, answers: Mapping[int, int]) -> Sets | None:
    """Return the set of each image: of an answered one its answer, none for `unknown`."""
    given = read_sets(run)
    if given is None:
        return None
    alike: dict[tuple[str, ...], tuple[str, ...]] = {}  # most sets are one of few
    sets = [alike.setdefault(members, members) for members in given]
    for row, index in answers.items():
        sets[row] = () if index == UNKNOWN else (classes.labels[index],)
    return tuple(sets)


def _applied(table: LabelTable, answers: Mapping[int, int]) -> LabelTable:
    """Return the table with the answers as labels, and all that follows from them."""
    if not answers:
        return table
    rows = np.fromiter(answers, np.int64)
    label = np.array(table.label)
    label[rows] = np.fromiter(answers.values(), np.int64)
    sure = np.where(label[rows] == UNKNOWN, 0.0, 1.0)
    reason = list(table.reason)
    for row in answers:
        reason[row] = ""
    columns: dict[str, Any] = {
        "label": label,
        "changed": label != table.zero_shot_label,
        "reason": tuple(reason),
    }
    values = {
        "score": sure,
        "margin": sure,
        "entropy": 1.0 - sure,
        "needs_review": False,
        "corrected": True,
        "doubt": 0.0,
    }
    for name, value in values.items():
        if name in LabelTable.__slots__ and getattr(table, name) is not None:
            columns[name] = np.array(getattr(table, name))
            columns[name][rows] = value
    return replace(table, **columns)
