"""`transduce embed`: a folder of images to a feature store."""

import contextlib
import enum
import shlex
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli import options
from transduce.cli.console import STOPPED, WITH_PROBLEMS, folder_name, note, say, say_json
from transduce.cli.progress import download_bar, progress_bar
from transduce.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transduce.encoders.encoder import Encoder
    from transduce.features.embedding import Progress, ShardExecutor
    from transduce.features.planning import Plan
    from transduce.features.store import FeatureStore
    from transduce.images.entries import Listing


class IfChangedName(enum.StrEnum):
    """What to do where the source has changed."""

    stop = "stop"
    keep = "keep"
    extend = "extend"


def embed_command(
    source: Annotated[str, options.SOURCE_ARGUMENT],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the features go.")],
    encoder: Annotated[
        str, typer.Option(metavar="ID", help="Such as clip, open_clip:ViT-B-32/openai or onnx:DIR.")
    ] = "clip",
    device: options.Device = "cpu",
    batch_size: options.BatchSize = 32,
    shard_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Images per shard; a stop loses at most one."),
    ] = None,
    workers: options.Workers = 0,
    time_limit: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="For one file; then it is skipped.")
    ] = 30.0,
    max_pixels: Annotated[
        int, typer.Option(min=1, metavar="N", help="Skip larger images.")
    ] = 178_956_970,
    fast_decode: Annotated[
        bool, typer.Option("--fast-decode", help="Shrink JPEGs while decoding: faster, not exact.")
    ] = False,
    if_changed: Annotated[
        IfChangedName,
        typer.Option(help="If the source has changed: stop, keep the old list, or extend it."),
    ] = IfChangedName.stop,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a run that was stopped."),
    ] = False,
    executor: options.Executor = options.ExecutorName.local,
    address: options.Address = None,
    actors: Annotated[
        int, typer.Option(min=1, metavar="N", help="With ray: encoders at work.")
    ] = 1,
    gpus_per_actor: Annotated[
        float, typer.Option(min=0, metavar="N", help="With ray: GPUs for each of them.")
    ] = 0,
    offline: options.Offline = False,
    as_json: options.SummaryAsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Embed images into a feature store; repeat the command to go on where it stopped.

    Exit 0: done. 1: done, but more than 5 % were skipped. 2: bad input. 130: stopped by Ctrl-C.
    """
    from transduce.encoders import load_encoder
    from transduce.features.embedding import Resources
    from transduce.features.embedding import embed as embed_images
    from transduce.features.layout import META, read_meta
    from transduce.images.sources import find_images

    if resume and (out / META).exists():
        read_meta(out)  # refuses what is no feature store
    elif resume and not quiet:
        note(f"Nothing to resume in {out}: this is a new run.")
    listing = find_images(source)
    if not quiet:
        note(_found_line(listing))

    def load() -> "Encoder":
        return load_encoder(
            encoder,
            offline=offline,
            device=device,
            batch_size=batch_size,
            bar=partial(download_bar, quiet=quiet),
        )

    run_on: ShardExecutor | None = None
    if executor is options.ExecutorName.ray:
        from transduce.features.ray_executor import on_ray

        run_on = on_ray(load, actors=actors, gpus_per_actor=gpus_per_actor, address=address)
    loaded = load()
    plans: list[Plan] = []
    start = time.monotonic()
    store = embed_images(
        listing,
        loaded,
        out=out,
        batch_size=batch_size,
        fast_decode=fast_decode,
        most_pixels=max_pixels,
        shard_size=shard_size,
        if_changed=if_changed.value,
        resources=Resources(workers, time_limit),
        executor=run_on,
        watch=lambda plan: _watch(plan, plans, quiet=quiet),
    )
    report = _report(store, plans[0], time.monotonic() - start)
    if as_json:
        say_json(report)
    elif not quiet:
        say(*_summary(report))
    if report["skipped"] > options.MOST_SKIPPED * report["found"]:
        raise typer.Exit(WITH_PROBLEMS)


@contextlib.contextmanager
def _watch(plan: "Plan", plans: "list[Plan]", *, quiet: bool) -> "Iterator[Progress]":
    """Print the plan, draw the progress, and say what is safe after Ctrl-C."""
    from transduce.features.verification import finished_shards

    plans.append(plan)
    for line in [] if quiet else _plan_lines(plan):
        note(line)
    try:
        bar = progress_bar("Embedding", plan.images_pending, quiet=quiet or not plan.pending)
        with bar as progress:
            yield progress
    except KeyboardInterrupt:
        rows = sum(shard.rows for shard in finished_shards(plan.folder))
        note(f"Stopped. {rows:,} of {plan.images:,} images are safe in {plan.folder}.")
        note(f"Go on with the same command: {shlex.join(['transduce', *sys.argv[1:]])}")
        raise typer.Exit(STOPPED) from None


def _found_line(listing: "Listing") -> str:
    ignored = f" ({counted(listing.ignored, 'other file')} ignored)" if listing.ignored else ""
    return f"Found {counted(len(listing.entries), 'image')} in {listing.source}{ignored}"


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


def _report(store: "FeatureStore", plan: "Plan", seconds: float) -> dict[str, Any]:
    meta = store.meta
    now = [shard.rows for shard in meta.shards if shard.index in plan.pending]
    return {
        "out": str(store.folder),
        "encoder": meta.identity.encoder,
        "dimension": meta.identity.dimension,
        "found": meta.rows + meta.skipped,
        "embedded": meta.rows,
        "embedded_now": sum(now),
        "skipped": meta.skipped,
        "reasons": dict(Counter(skip.reason for skip in store.skipped()).most_common()),
        "duplicates": meta.duplicates,
        "seconds": round(seconds, 3),
    }


def _summary(report: dict[str, Any]) -> list[str]:
    folder, skipped = folder_name(Path(report["out"])), report["skipped"]
    lines = [
        f"Embedded {counted(report['embedded_now'], 'image')} with {report['encoder']} "
        f"({report['dimension']} numbers each) in {_duration(report['seconds'])}"
    ]
    before = report["embedded"] - report["embedded_now"]
    if before:
        lines.append(
            f"Together with the {before:,} of before: {counted(report['embedded'], 'image')}"
        )
    if skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report["reasons"].items())
        lines.append(f"Skipped {skipped:,} ({skipped / report['found']:.1%}): {reasons}")
    if report["duplicates"]:
        lines.append(f"Exact duplicates of earlier images: {report['duplicates']:,}")
    files = "img_emb/  metadata/  meta.json"
    files += "  skipped.csv" if skipped else ""
    files += "  duplicates.csv" if report["duplicates"] else ""
    lines += [f"Wrote {folder}   {files}", f"Next: transduce features info {report['out']}"]
    return lines


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
