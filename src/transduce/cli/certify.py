"""`transduce certify`: how accurate a run is, and how many of its labels can be trusted."""

from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.atomic import to_plain
from transduce.cli.console import note, say, say_json


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
    as_json: Annotated[bool, typer.Option("--json", help="Print certificate.json.")] = False,
) -> None:
    """Say how accurate the labels are and certify as many as the audit allows.

    The audit comes first: transduce review RUN --audit 100 shows images drawn at random. The
    largest part of the labels, most trusted first, of which at most --error are wrong is
    certified, in RUN/certificate.json and in every export. docs/trust.md says how it works.
    """
    from transduce.labeling.certificate import CERTIFICATE, CertificateFacts, certify
    from transduce.labeling.run_directory import RunDirectory

    certificate = certify(
        RunDirectory.load(run),
        error=error,
        confidence=confidence,
        count_unanswered_as_wrong=count_unanswered_as_wrong,
    )
    if as_json:
        plain: dict[str, Any] = to_plain(certificate)
        say_json({name: plain[name] for name in CertificateFacts.__dataclass_fields__})
        return
    low, high = certificate.interval
    say(
        f"Audit      {certificate.audited:,} of {certificate.population:,} images, drawn at "
        f"random: {certificate.wrong:,} labels wrong",
        f"Accuracy   {certificate.accuracy:.1%} of the labels are right, {low:.1%} to {high:.1%} "
        f"with {confidence:.0%} confidence",
        f"Certified  {certificate.certified_images:,} of {certificate.population:,} labels, the "
        f"most trusted: at most {error:.1%} of them are wrong, with {confidence:.0%} confidence",
    )
    rest = certificate.population - certificate.certified_images
    if rest:
        say(f"To check   {rest:,} labels: transduce review {run}")
        say(f"More       {_more(certificate.more, run)}")
    note(f"Wrote {run / CERTIFICATE}")


def _more(images: int | None, run: Path) -> str:
    if images is None:
        return "no audit of a sensible size would certify more: correct labels, or allow more error"
    return f"about {images:,} new images would do: transduce review {run} --audit {images}"
