"""`transduce certify`: how accurate a run is, and how many of its labels can be trusted."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import note, say, say_json
from transduce.machine.atomic import to_plain


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
    low, high = certificate.interval
    sure, limit = _percent(confidence), _percent(error)
    certified = (
        f"{certificate.certified_images:,} of {certificate.population:,} labels, the most trusted: "
        f"at most {limit} of them are wrong, with {sure} confidence"
    )
    if not certificate.certified_images:
        certified = f"none: no part of the labels is known to be at most {limit} wrong"
    say(
        f"Audit      {certificate.audited:,} of {certificate.population:,} images, drawn at "
        f"random: {certificate.wrong:,} labels wrong",
        f"Accuracy   {certificate.accuracy:.1%} of the labels are right, {low:.1%} to {high:.1%} "
        f"with {sure} confidence",
        f"Certified  {certified}",
    )
    rest = certificate.population - certificate.certified_images
    if rest:
        say(f"To check   {rest:,} labels: transduce review {run}")
        say(f"More       {_more(certificate.more, run)}")
    if chosen is not None:
        say(
            f"Sets       {chosen.sizes.mean():.1f} classes an image on average hold the truth of "
            f"{_percent(chosen.coverage)} of the images: {run / SETS}"
        )
    note(f"Wrote {run / CERTIFICATE}, and the report anew")


def _more(images: int | None, run: Path) -> str:
    if images is None:
        return "no audit of a sensible size would certify more: correct labels, or allow more error"
    return f"{images:,} new images would probably do: transduce review {run} --audit {images}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
