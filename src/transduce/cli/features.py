"""`transduce features`: look at, check, join and import feature stores."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import WITH_PROBLEMS, folder_name, say, say_json

features = typer.Typer(help="Look at, check, join and import feature stores.", no_args_is_help=True)

Store = Annotated[Path, typer.Argument(help="A feature store.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@features.command("info")
def info_command(store: Store, as_json: Json = False) -> None:
    """Say what a store holds: images, encoder, settings, skipped files."""
    from transduce.features.layout import read_meta
    from transduce.features.store import FeatureStore
    from transduce.features.verification import finished_shards

    meta = read_meta(store)
    if as_json:
        say_json(meta.to_json())
        return
    if not meta.complete:
        shards = finished_shards(store)
        rows = sum(shard.rows for shard in shards)
        say(
            f"{folder_name(store)}  unfinished: {rows:,} images in {len(shards):,} shards",
            f"Next: transduce embed {meta.source} --out {store}",
        )
        raise typer.Exit(WITH_PROBLEMS)
    opened = FeatureStore.open(store)
    identity = meta.identity
    say(
        f"{folder_name(store)}  {len(opened):,} images x {identity.dimension} numbers",
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
    """Read every byte of a store: hashes, counts, NaN, norms. Exit 1 if anything is wrong."""
    from transduce.features.verification import verify_store

    checked = verify_store(store)
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
    stores: Annotated[list[Path], typer.Argument(help="Two or more stores of one encoder.")],
    out: Annotated[Path, typer.Option("--out", help="The new store.")],
    prefix: Annotated[
        bool, typer.Option("--prefix", help="Put each store's folder name before its file names.")
    ] = False,
) -> None:
    """Join stores made by the same encoder; other encoders are refused, also of equal width."""
    from transduce.features.merging import merge

    merged = merge(stores, out, prefix=prefix)
    say(f"Wrote {folder_name(out)}  {len(merged):,} images from {len(stores)} stores")


@features.command("import")
def import_command(
    path: Annotated[
        Path,
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
