"""`transduce embed`: a folder of pictures to a feature store."""

import enum
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.console import STOPPED, WITH_PROBLEMS, folder_name, note, say, say_json
from transduce.cli.progress import progress_bar

if TYPE_CHECKING:
    from transduce.encoders.encoder import Encoder
    from transduce.features.extraction import Executor, Report, Resources
    from transduce.features.planning import Plan
    from transduce.images.sources import Found

MOST_SKIPPED = 0.05  # above this share the run counts as finished with problems


class ExecutorName(enum.StrEnum):
    local = "local"
    ray = "ray"


class IfChangedName(enum.StrEnum):
    stop = "stop"
    keep = "keep"
    extend = "extend"


def embed(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder, a quoted glob, a list (.txt, or .csv and .parquet with a file_name "
            "column), a .tar, .parquet with pictures inside, or a URL such as s3://bucket/photos "
            "or hf://datasets/ORG/NAME.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the features go.")],
    encoder: Annotated[
        str, typer.Option(metavar="ID", help="Such as open_clip:ViT-B-32/openai or onnx:DIR.")
    ] = "default",
    device: Annotated[
        str, typer.Option(metavar="NAME", help="For encoders in torch: cpu, cuda, mps.")
    ] = "cpu",
    batch_size: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pictures per forward pass.")
    ] = 32,
    shard_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Pictures per shard; a stop loses at most one."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Decoding processes; 0 is one per core.")
    ] = 0,
    time_limit: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="For one file; then it is skipped.")
    ] = 30.0,
    max_pixels: Annotated[
        int, typer.Option(min=1, metavar="N", help="Skip larger pictures.")
    ] = 178_956_970,
    fast_decode: Annotated[
        bool, typer.Option("--fast-decode", help="Shrink JPEGs while decoding: faster, not exact.")
    ] = False,
    if_changed: Annotated[
        IfChangedName,
        typer.Option(help="If the source has changed: stop, keep the old list, or extend it."),
    ] = IfChangedName.stop,
    resume: Annotated[
        bool, typer.Option("--resume", help="Only go on with a stopped run; never begin one.")
    ] = False,
    executor: Annotated[
        ExecutorName, typer.Option(help="This machine, or a Ray cluster.")
    ] = ExecutorName.local,
    actors: Annotated[
        int, typer.Option(min=1, metavar="N", help="With ray: encoders at work.")
    ] = 1,
    gpus_per_actor: Annotated[
        float, typer.Option(min=0, metavar="N", help="With ray: GPUs for each of them.")
    ] = 0,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Embed pictures into a feature store; repeat the command to go on where it stopped.

    Exit 0: done. 1: done, but more than 5 % were skipped. 2: bad input. 130: stopped by Ctrl-C.
    """
    from transduce.features.extraction import Resources, local, settings_for
    from transduce.features.layout import read_meta
    from transduce.features.planning import lock, prepare
    from transduce.images.sources import find_images

    if resume:
        read_meta(out)  # refuses a folder without one
    found = find_images(source)
    tell = (lambda line: None) if quiet else note
    tell(_found_line(found))
    settings = settings_for(batch_size=batch_size, fast_decode=fast_decode, most_pixels=max_pixels)

    def load() -> "Encoder":
        from transduce.encoders import load_encoder

        return load_encoder(encoder, offline=offline, device=device, batch_size=batch_size)

    loaded = load()
    run_on: Executor = local(loaded)
    if executor is ExecutorName.ray:
        from transduce.features.ray_executor import on_ray

        run_on = on_ray(load, actors=actors, gpus_per_actor=gpus_per_actor)
    with lock(out):
        plan = prepare(
            found, out, loaded.identity, settings,
            shard_size=shard_size, if_changed=if_changed.value,
        )  # fmt: skip
        for line in _plan_lines(plan):
            tell(line)
        report = _run(plan, run_on, Resources(workers, time_limit), quiet=quiet)
    if as_json:
        say_json(_as_json(report))
    elif not quiet:
        say(*_summary(report, encoder))
    if report.skipped_share > MOST_SKIPPED:
        raise typer.Exit(WITH_PROBLEMS)


def _run(plan: "Plan", run_on: "Executor", resources: "Resources", *, quiet: bool) -> "Report":
    from transduce.features.extraction import execute
    from transduce.features.verification import finished_shards

    quiet = quiet or not plan.pending
    try:
        with progress_bar("Embedding", plan.images_pending, quiet=quiet) as progress:
            return execute(plan, run_on, resources, progress)
    except KeyboardInterrupt:
        rows = sum(shard.rows for shard in finished_shards(plan.folder))
        note(f"Stopped. {rows:,} of {plan.images:,} pictures are safe in {plan.folder}.")
        note(f"Go on with the same command: {_command()}")
        raise typer.Exit(STOPPED) from None


def _command() -> str:
    import sys

    return shlex.join(["transduce", *sys.argv[1:]])


def _found_line(found: "Found") -> str:
    ignored = f" ({_count(found.ignored, 'other file')} ignored)" if found.ignored else ""
    return f"Found {_count(len(found.entries), 'image')} in {found.source}{ignored}"


def _plan_lines(plan: "Plan") -> list[str]:
    lines = []
    if plan.changes is not None:
        lines.append(f"Since the run began: {plan.changes.describe()}")
        if plan.changes.gone or plan.changes.changed:
            lines.append("  (rows of files that are gone or changed stay as they were embedded)")
    if not plan.pending:
        lines.append(f"{folder_name(plan.folder)} is complete; nothing to embed")
    elif plan.resumed:
        done = plan.images - plan.images_pending
        lines.append(f"Going on after {done:,} of {plan.images:,} images")
    return lines


def _summary(report: "Report", encoder: str) -> list[str]:
    meta, folder = report.meta, folder_name(report.folder)
    lines = [
        f"Embedded {_count(report.embedded_now, 'image')} with {encoder} "
        f"({meta.identity.dimension} numbers each) in {_duration(report.seconds)}"
    ]
    if report.embedded_now < meta.rows:
        before = meta.rows - report.embedded_now
        lines.append(f"Together with the {before:,} of before: {_count(meta.rows, 'image')}")
    if meta.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.reasons.most_common())
        lines.append(f"Skipped {meta.skipped:,} ({report.skipped_share:.1%}): {reasons}")
    if meta.duplicates:
        lines.append(f"Exact duplicates of earlier images: {meta.duplicates:,}")
    files = "img_emb/  metadata/  meta.json"
    files += "  skipped.csv" if meta.skipped else ""
    files += "  duplicates.csv" if meta.duplicates else ""
    lines += [f"Wrote {folder}   {files}", f"Next: transduce features info {report.folder}"]
    return lines


def _as_json(report: "Report") -> dict[str, Any]:
    return {
        "out": str(report.folder),
        "encoder": report.meta.identity.encoder,
        "dimension": report.meta.identity.dimension,
        "found": report.found,
        "embedded": report.meta.rows,
        "embedded_now": report.embedded_now,
        "skipped": report.meta.skipped,
        "reasons": dict(report.reasons.most_common()),
        "duplicates": report.meta.duplicates,
        "seconds": round(report.seconds, 3),
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
