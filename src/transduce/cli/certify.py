"""`transduce certify`: how accurate a run is, and how many of its labels can be trusted."""

import enum
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.console import note, say, say_json
from transduce.errors import counted
from transduce.machine.atomic import to_plain

if TYPE_CHECKING:
    from transduce.labeling.run_directory import RunDirectory
    from transduce.labeling.trust.certificate import Certificate
    from transduce.labeling.trust.class_sets import ClassSets

WIDTH = 80
INDENT = " " * 11
USELESS = 0.5  # sets that hold more of the classes than this say nothing


class SetsName(enum.StrEnum):
    """How the classes of a set are compared."""

    lac = "lac"
    aps = "aps"


def certify_command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory with a finished audit.")
    ],
    error: Annotated[
        float, typer.Option(metavar="SHARE", help="Most wrong labels among the certified.")
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="How often such a claim is to hold.")
    ] = 0.95,
    count_unanswered_as_wrong: Annotated[
        bool, typer.Option(help="Certify an audit that is not finished.")
    ] = False,
    sets: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Write the classes that hold the truth so often."),
    ] = None,
    sets_method: Annotated[
        SetsName, typer.Option(help="lac: small sets; aps: larger ones for hard images.")
    ] = SetsName.lac,
    as_json: Annotated[bool, typer.Option("--json", help="Print certificate.json.")] = False,
) -> None:
    """Say how accurate the labels are and certify as many as the audit allows.

    The audit comes first: transduce review RUN --audit 100 shows images drawn at random. The
    largest part of the labels, most trusted first, of which at most --error are wrong is
    certified, in RUN/certificate.json and in every export. docs/trust.md says how it works.
    """
    from transduce.labeling.report.page import write_report
    from transduce.labeling.run_directory import RunDirectory
    from transduce.labeling.trust.certificate import CERTIFICATE, certify
    from transduce.labeling.trust.class_sets import SETS, prediction_sets, write_sets

    loaded = RunDirectory.load(run)
    certificate = certify(
        loaded,
        error=error,
        confidence=confidence,
        count_unanswered_as_wrong=count_unanswered_as_wrong,
    )
    chosen = prediction_sets(loaded, sets, sets_method.value) if sets is not None else None
    if chosen is not None:
        write_sets(loaded, chosen)
    write_report(loaded)  # which shows the certificate from now on
    if as_json:
        say_json(to_plain(certificate.facts()))
        return
    say(*_lines(certificate, loaded, run))
    if chosen is not None:
        say(*_sets(chosen, len(loaded.classes), run / SETS))
    note(f"Wrote {run / CERTIFICATE}, and the report anew")


def _lines(certificate: "Certificate", run: "RunDirectory", folder: Path) -> list[str]:
    """Return what is printed of a certificate."""
    from transduce.labeling.trust.audit import read_audits

    low, high = certificate.interval
    sure, limit = _percent(certificate.confidence), _percent(certificate.error)
    wrong = counted(certificate.wrong - certificate.unanswered, "label")
    if certificate.unanswered:
        wrong += f" wrong, and {certificate.unanswered:,} without an answer counted as"
    every = certificate.audited == certificate.population
    certified = (
        f"{certificate.certified_images:,} of {certificate.population:,} labels, the most trusted: "
        f"at most {limit} of them are wrong" + ("" if every else f", with {sure} confidence")
    )
    if not certificate.certified_images:
        certified = f"none: no part of the labels is known to be at most {limit} wrong"
    accuracy = f"{certificate.accuracy:.1%} of the labels are right"
    lines = [
        *_wrap(
            f"Audit      {'all' if every else format(certificate.audited, ',')} of "
            f"{certificate.population:,} images{'' if every else ', drawn at random'}: "
            f"{wrong} wrong"
        ),
        *_wrap(
            f"Accuracy   {accuracy}"
            + ("" if every else f", {low:.1%} to {high:.1%} with {sure} confidence")
        ),
        *_wrap(f"Certified  {certified}"),
    ]
    seen = {name for audit in read_audits(run) for name in audit.answers}
    table = run.labels
    rest = sum(
        not (certified or corrected or name in seen)
        for name, certified, corrected in zip(
            table.file_name, certificate.certified, table.corrected, strict=True
        )
    )
    if rest:
        lines += _wrap(f"To check   {counted(rest, 'label')} nobody looked at:")
        lines += [f"{INDENT}transduce review {folder}", *_more(certificate.more, folder)]
    elif certificate.certified_images < certificate.population:
        lines += _wrap("To check   none: all others were looked at, and exports have the answers")
    return lines


def _more(images: int | None, run: Path) -> list[str]:
    if images is None:
        return _wrap(
            "More       a larger audit would hardly certify more: correct labels, or allow a "
            "larger --error with a new audit"
        )
    return [
        f"More       {images:,} new images would probably do:",
        f"{INDENT}transduce review {run} --audit {images}",
    ]


def _sets(chosen: "ClassSets", n_classes: int, file: Path) -> list[str]:
    mean = float(chosen.sizes.mean())
    coverage = _percent(chosen.coverage)
    lines = _wrap(
        f"Sets       {mean:.1f} classes an image on average hold the truth of {coverage} of the "
        f"images: {file}"
    )
    if n_classes > 1 and mean > USELESS * n_classes:
        lines += _wrap(
            f"{INDENT}that is most of the {n_classes:,} classes: so few audited images, or so many "
            f"wrong labels, say no more at {coverage}; audit more images or ask for less"
        )
    return lines


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
