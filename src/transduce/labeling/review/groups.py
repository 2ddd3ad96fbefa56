"""Images that are looked at together: those of one class, of look-alike classes, of no class."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from transduce.errors import InvalidAnswer
from transduce.labeling.report.selection import summarize_probabilities
from transduce.labeling.review.similar import Similarity
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names
from transduce.labeling.trust.unknown import suspects

CELLS = 60  # images of a grid
MOST_PAIRS = 12
LEAST_SHARE = 0.02  # of probability that two look-alike classes share
MOST_UNKNOWN = 2000  # compared with each other; the most doubtful of more

Kind = Literal["class", "pair", "unknown", "search"]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows to look at together, the most doubtful first."""

    id: str
    kind: Kind
    title: str
    rows: tuple[int, ...]


def groups_of(run: RunDirectory, similarity: Similarity) -> list[Group]:
    """Return the groups of a run: images of no class, look-alike classes, then each class."""
    return [*_unknown(run, similarity), *_pairs(run), *_classes(run)]


def _classes(run: RunDirectory) -> list[Group]:
    labels = run.labels
    expected = np.bincount(
        labels.label[labels.label != UNKNOWN],
        weights=labels.doubt[labels.label != UNKNOWN],
        minlength=len(run.classes),
    )
    order = np.argsort(-expected, kind="stable")
    rows = np.flatnonzero((labels.label != UNKNOWN) & ~labels.corrected)
    rows = rows[np.lexsort((-labels.doubt[rows], labels.label[rows]))]
    starts = np.searchsorted(labels.label[rows], np.arange(len(run.classes) + 1))
    parts = [(k, rows[starts[k] : starts[k + 1]]) for k in order.tolist()]
    return [
        Group(f"class-{k}", "class", run.classes.labels[k], tuple(part.tolist()))
        for k, part in parts
        if len(part)
    ]


def _pairs(run: RunDirectory) -> list[Group]:
    """Return the images of two classes that share probability, for classes that do."""
    _, pairs = summarize_probabilities(run, (), 1)
    if pairs is None:
        return []
    names, label = run.classes.labels, run.labels.label
    made = [
        Group(
            f"pair-{first}-{second}",
            "pair",
            f"{names[first]} or {names[second]}",
            _by_doubt(run, (label == first) | (label == second)),
        )
        for first, second, _ in pairs.most_confusable(MOST_PAIRS, LEAST_SHARE)
    ]
    return [group for group in made if group.rows]


def _unknown(run: RunDirectory, similarity: Similarity) -> list[Group]:
    rows = np.array(_by_doubt(run, suspects(run).suspected), dtype=np.int64)
    rows = np.sort(rows[:MOST_UNKNOWN])
    return [
        Group(f"unknown-{number}", "unknown", f"none of the classes? ({number + 1})", tuple(alike))
        for number, alike in enumerate(similarity.groups(rows))
    ]


def _by_doubt(run: RunDirectory, chosen: np.ndarray) -> tuple[int, ...]:
    rows = np.flatnonzero(chosen & ~run.labels.corrected)
    order: list[int] = rows[np.argsort(-run.labels.doubt[rows], kind="stable")].tolist()
    return tuple(order)


class Grids:
    """The groups of a run as the page shows them; they are made when one is first asked for."""

    def __init__(self, run: RunDirectory, similarity: Similarity) -> None:
        self._run = run
        self._similarity = similarity
        self._names = label_names(run.classes)

    @cached_property
    def _groups(self) -> dict[str, Group]:
        return {group.id: group for group in groups_of(self._run, self._similarity)}

    def described(self, done: Collection[int]) -> list[dict[str, Any]]:
        """Return what each group is and how much of it is left; without those that are done."""
        entries = []
        for group in self._groups.values():
            left = [row for row in group.rows if row not in done]
            if left:
                entries.append(self._about(group, left))
        return entries

    def grid(self, name: str, answers: Mapping[str, str], done: Collection[int]) -> dict[str, Any]:
        """Return the images of a group that are not done, at most CELLS of them."""
        group = self._groups.get(name)
        if group is None:
            raise InvalidAnswer(f"Expected a group of the run, found {name!r}.")
        return self._grid(group, [row for row in group.rows if row not in done], answers)

    def found(self, title: str, rows: Sequence[int], answers: Mapping[str, str]) -> dict[str, Any]:
        """Return a grid of images that were looked for."""
        return self._grid(Group("search", "search", title, tuple(rows)), rows, answers)

    def _about(self, group: Group, left: Sequence[int]) -> dict[str, Any]:
        wrong = round(float(self._run.labels.doubt[list(left)].sum()), 1)
        return {
            "id": group.id,
            "kind": group.kind,
            "title": group.title,
            "left": len(left),
            "wrong": wrong,
        }

    def _grid(
        self, group: Group, left: Sequence[int], answers: Mapping[str, str]
    ) -> dict[str, Any]:
        labels = self._run.labels
        cells = []
        for row in left[:CELLS]:
            name = labels.file_name[row]
            label = answers.get(name, self._names[labels.label[row]])
            cells.append(
                {"row": row, "file_name": name, "label": label, "answered": name in answers}
            )
        return {**self._about(group, left), "cells": cells}
