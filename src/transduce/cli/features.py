"""`transduce features`: look at, check, join and import feature stores."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import WITH_PROBLEMS, folder_name, say, say_json
from transduce.cli.progress import download_bar
from transduce.errors import InvalidStore

features = typer.Typer(help="Look at, check, join and import feature stores.", no_args_is_help=True)

Store = Annotated[str, typer.Argument(help="A feature store: a folder, or a URL (s3:// ...).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@features.command("info")
def info_command(store: Store, as_json: Json = False) -> None:
    """Say what a store holds: images, encoder, settings, skipped files."""
    from transduce.features.fetching import read_remote_meta
    from transduce.features.layout import read_meta
    from transduce.features.verification import finished_shards
    from transduce.images.entries import is_url

    meta = read_remote_meta(store) if is_url(store) else read_meta(Path(store))
    if as_json:
        say_json(meta.to_json())
        return
    if not meta.complete and is_url(store):
        say(
            f"{folder_name(store)}  unfinished",
            f"Next: transduce embed {meta.source} where it was made, and copy it there once more",
        )
        raise typer.Exit(WITH_PROBLEMS)
    if not meta.complete:
        shards = finished_shards(Path(store))
        rows = sum(shard.rows for shard in shards)
        say(
            f"{folder_name(store)}  unfinished: {rows:,} images in {len(shards):,} shards",
            f"Next: transduce embed {meta.source} --out {store}",
        )
        raise typer.Exit(WITH_PROBLEMS)
    identity = meta.identity
    say(
        f"{folder_name(store)}  {meta.rows:,} images x {identity.dimension} numbers",
        f"  encoder     {identity.encoder}",
        f"  weights     {identity.weights}",
        f"  decoding    {meta.settings.decoding}",
        f"  source      {meta.source or 'unknown'}",
        f"  shards      {len(meta.shards):,}",
        f"  skipped     {meta.skipped:,}",
        f"  duplicates  {meta.duplicates:,}",
    )


@features.command("verify")
def verify_command(store: Store, as_json: Json = False) -> None:
    """Read every byte of a store: hashes, counts, NaN, norms. Exit 1 if anything is wrong.

    A store behind a URL is read there, shard by shard; none of it is kept.
    """
    from transduce.features.verification import verify_store

    checked = verify_store(store, bar=partial(download_bar, quiet=as_json))
    if as_json:
        say_json(
            {"shards": checked.shards, "rows": checked.rows, "problems": list(checked.problems)}
        )
    else:
        say(f"Read {checked.rows:,} rows in {checked.shards:,} shards of {folder_name(store)}")
        problems = [f"  {problem}" for problem in checked.problems]
        say(*problems or ["Everything is in order."])
    if checked.problems:
        raise typer.Exit(WITH_PROBLEMS)


@features.command("merge")
def merge_command(
    stores: Annotated[list[str], typer.Argument(help="Two or more stores of one encoder.")],
    out: Annotated[Path, typer.Option("--out", help="The new store.")],
    prefix: Annotated[
        bool, typer.Option("--prefix", help="Put each store's folder name before its file names.")
    ] = False,
) -> None:
    """Join stores made by the same encoder; other encoders are refused, also of equal width."""
    from transduce.features.merging import merge

    merged = merge(stores, out, prefix=prefix, bar=partial(download_bar, quiet=False))
    say(f"Wrote {folder_name(out)}  {len(merged):,} images from {len(stores)} stores")


@features.command("import")
def import_command(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="An .npz, .npy, .parquet or .pt file, or a clip-retrieval folder.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The new store.")],
    array: Annotated[
        str | None, typer.Option(metavar="KEY", help="The image embeddings, one row each.")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="KEY|FILE", help="A name for each image: an array, .txt, .csv, .npy."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="KEY|FILE", help="The true class of each image: name or number."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C|KEY|FILE", help="The class names, in the order of numbers."),
    ] = None,
    class_embeddings: Annotated[
        str | None, typer.Option(metavar="KEY|FILE", help="A text embedding for each class.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(metavar="ID", help="The encoder that made the features.")
    ] = None,
) -> None:
    """Turn features made elsewhere into a feature store.

    KEY is an array of the file or a column of the table; the usual names, such as embeddings,
    file_name, labels, classes and class_embeddings, need no option.
    """
    from transduce.encoders.precomputed import TEXTS
    from transduce.features.importing import CLASSES, LABELS, import_features
    from transduce.images.entries import is_url

    if is_url(path):
        raise InvalidStore(
            f"Expected a file or folder of this machine, found {path}; copy it here first. "
            "Feature stores are read from URLs: transduce label --features URL"
        )
    store = import_features(
        path,
        out,
        array=array,
        names=names,
        labels=labels,
        classes=classes,
        class_embeddings=class_embeddings,
        encoder=encoder,
    )
    beside = [name for name in (LABELS, CLASSES, TEXTS) if (out / name).is_file()]
    say(
        f"Wrote {folder_name(out)}  {len(store):,} images x {store.dimension} numbers"
        + "".join(f"  {name}" for name in beside)
    )
    with_classes = f"--classes-file {out / CLASSES}" if CLASSES in beside else "--classes A,B,C"
    with_truth = f" --truth {out / LABELS}" if LABELS in beside else ""
    say(f"Next: transduce label --features {out} {with_classes}{with_truth}")
