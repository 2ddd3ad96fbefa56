"""The audit of a run: images drawn at random, shown with their labels, agreed with or corrected.

What an audit says of the other images rests on chance alone, so the draw is written into the
journal before any image of it is seen, and everything that would make it less than a random draw
is found here and named: another draw than the seed's, labels that changed since, answers missing.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from transduce.errors import InvalidAudit
from transduce.labeling.files import labels_of
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory

MOST_SEED = 2**32

Rows = Int[np.ndarray, " row"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Images of a run that were drawn at random, and the answers about them so far.

    Parameters
    ----------
    number : int
        1 for the first draw of the run, 2 for the next.
    seed : int
        What the draw follows from, together with the file names.
    rows : array of int of shape (drawn,)
        The rows of the run, in the order in which they are to be shown.
    file_names : tuple of str
        The same as file names.
    answers : mapping of str to str
        The label (or `unknown`) that a person gave to each file answered so far.
    known : mapping of int to str
        The answers of complete earlier draws, by row: these images are not drawn again.
    void : str
        Why nothing may be concluded from this audit; empty if all is well.
    """

    number: int
    seed: int
    rows: Rows
    file_names: tuple[str, ...]
    answers: Mapping[str, str]
    known: Mapping[int, str]
    void: str = ""

    def __len__(self) -> int:
        return len(self.file_names)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The files without an answer, in the order of the draw."""
        return tuple(name for name in self.file_names if name not in self.answers)

    @property
    def complete(self) -> bool:
        """Whether every image of the draw has an answer."""
        return not self.unanswered


def fingerprint(run: RunDirectory) -> str:
    """Return a hash of what an audit speaks about: files, labels, doubts, corrections."""
    table = run.labels
    digest = hashlib.sha256()
    for texts in (table.file_name, labels_of(table.label, run.classes)):
        digest.update("\0".join(texts).encode("utf-8", "surrogatepass"))
        digest.update(b"\0\0")
    digest.update(np.ascontiguousarray(table.doubt, "<f4").tobytes())
    digest.update(np.packbits(table.corrected).tobytes())
    return digest.hexdigest()


def draw_audit(run: RunDirectory, size: int, seed: int | None = None) -> Audit:
    """Draw images at random, without replacement, and record the draw before any is shown.

    Images labeled by hand are not drawn, nor those of complete earlier audits. While an audit
    of the same size is unfinished, it is returned as it is: what is drawn stays drawn.

    Parameters
    ----------
    run : RunDirectory
        The run to audit.
    size : int
        How many images.
    seed : int, optional
        Repeats a draw; by default a new random one.

    Returns
    -------
    Audit
        The images to show.

    Raises
    ------
    InvalidAudit
        If there are too few images, or another audit is unfinished.
    """
    journal = Journal.open(run.folder)
    audits = read_audits(run, journal)
    last = audits[-1] if audits else None
    if last is not None and not last.void and not last.complete:
        if len(last) == size and seed in (None, last.seed):
            return last
        raise InvalidAudit(
            f"Expected the audit of {len(last):,} images to be finished first, found "
            f"{len(last.unanswered):,} without an answer; a draw that is left because of its first "
            "answers is no random one. Go on with: transduce review "
            f"{run.folder} --audit {len(last)}"
        )
    known = _known(audits)
    free = _population(run, known)
    if not 1 <= size <= len(free):
        raise InvalidAudit(
            f"Expected an audit of 1 to {len(free):,} images (those not labeled by hand and not "
            f"audited before), found {size:,}."
        )
    seed = secrets.randbelow(MOST_SEED) if seed is None else seed
    number = len(audits) + 1
    rows = _drawn(run, free, size, seed, number)
    names = [run.labels.file_name[row] for row in rows]
    facts = {
        "number": number,
        "seed": seed,
        "size": size,
        "population": len(free),
        "fingerprint": fingerprint(run),
        "file_names": names,
    }
    journal.append("draw", facts=facts)
    return Audit(
        number=number, seed=seed, rows=rows, file_names=tuple(names), answers={}, known=known
    )


def read_audit(run: RunDirectory) -> Audit | None:
    """Return the last audit of a run with its answers so far; None if nothing was drawn."""
    audits = read_audits(run)
    return audits[-1] if audits else None


def read_audits(run: RunDirectory, journal: Journal | None = None) -> list[Audit]:
    """Return every draw of a run with the answers that were given after it."""
    journal = journal or Journal.open(run.folder)
    audits: list[Audit] = []
    now = fingerprint(run) if journal.draws else ""
    row_of = {name: row for row, name in enumerate(run.labels.file_name)} if now else {}
    draws = [start for start, line in enumerate(journal.lines) if line["kind"] == "draw"]
    for number, start in enumerate(draws, start=1):
        line = journal.lines[start]
        names, seed = tuple(line["file_names"]), int(line["seed"])
        known = _known(audits)
        rows = np.array([row_of.get(name, -1) for name in names], np.int64)
        given = _answers_after(journal.lines[start:], set(names))
        void = _trouble(run, line, rows, known, number, now)
        audits.append(
            Audit(
                number=number,
                seed=seed,
                rows=rows,
                file_names=names,
                answers=given,
                known=known,
                void=void,
            )
        )
    return audits


def _answers_after(lines: Sequence[Mapping[str, Any]], names: set[str]) -> dict[str, str]:
    """Return the last answers about these files; an undone one falls back to the one before."""
    given: dict[str, str] = {}
    for line in lines:
        of = line.get("of") if line["kind"] == "undo" else line["kind"]
        if of == "audit" and line.get("file_name") in names:
            if line.get("label") is None:
                given.pop(line["file_name"], None)
            else:
                given[line["file_name"]] = line["label"]
    return given


def _trouble(
    run: RunDirectory,
    line: Mapping[str, Any],
    rows: Rows,
    known: Mapping[int, str],
    number: int,
    now: str,
) -> str:
    """Return why a draw counts for nothing; empty if it counts."""
    if line["fingerprint"] != now:
        return "the labels of the run are not those that the audit was drawn from"
    free = _population(run, known)
    size = len(rows)
    if size > len(free) or not np.array_equal(
        rows, _drawn(run, free, size, int(line["seed"]), number)
    ):
        return "its images are not the random draw of its seed"
    return ""


def _known(audits: Sequence[Audit]) -> dict[int, str]:
    """Return the answers of audits that are complete and count, by row."""
    return {
        int(row): audit.answers[name]
        for audit in audits
        if not audit.void and audit.complete
        for row, name in zip(audit.rows, audit.file_names, strict=True)
    }


def _population(run: RunDirectory, known: Mapping[int, str]) -> Rows:
    """Return the rows that may be drawn."""
    free: Bool[np.ndarray, " image"] = ~run.labels.corrected
    free = free.copy()
    free[list(known)] = False
    return np.flatnonzero(free)


def _drawn(run: RunDirectory, free: Rows, size: int, seed: int, number: int) -> Rows:
    """Return the rows whose hashes with the seed come first: anyone can check them."""
    names = run.labels.file_name
    start = hashlib.sha256(f"{seed}/{number}/".encode())

    def hash_of(row: int) -> bytes:
        digest = start.copy()
        digest.update(names[row].encode("utf-8", "surrogatepass"))
        return digest.digest()

    return np.array(nsmallest(size, free.tolist(), key=hash_of), np.int64)
