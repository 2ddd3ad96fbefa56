"""`transduce features`: look at, check and join feature stores."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import WITH_PROBLEMS, folder_name, say, say_json

features = typer.Typer(help="Look at, check and join feature stores.", no_args_is_help=True)

Store = Annotated[Path, typer.Argument(help="A feature store.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@features.command("info")
def info(store: Store, as_json: Json = False) -> None:
    """Say what a store holds: pictures, encoder, settings, skipped files."""
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
            f"{folder_name(store)}  unfinished: {rows:,} pictures in {len(shards):,} shards",
            f"Next: transduce embed {meta.source} --out {store}",
        )
        raise typer.Exit(WITH_PROBLEMS)
    opened = FeatureStore.open(store)
    identity = meta.identity
    say(
        f"{folder_name(store)}  {len(opened):,} pictures x {identity.dimension} numbers",
        f"  encoder     {identity.encoder}",
        f"  weights     {identity.weights}",
        f"  decoding    {meta.settings.decoding}",
        f"  source      {meta.source or 'unknown'}",
        f"  shards      {len(meta.shards):,}",
        f"  skipped     {meta.skipped:,}",
        f"  duplicates  {meta.duplicates:,}",
    )


@features.command("verify")
def verify(store: Store, as_json: Json = False) -> None:
    """Read every byte of a store: hashes, counts, NaN, norms. Exit 1 if anything is wrong."""
    from transduce.features.verification import verify as verify_store

    found = verify_store(store)
    if as_json:
        say_json({"shards": found.shards, "rows": found.rows, "problems": list(found.problems)})
    else:
        say(f"Read {found.rows:,} rows in {found.shards:,} shards of {folder_name(store)}")
        problems = [f"  {problem}" for problem in found.problems]
        say(*problems or ["Everything is in order."])
    if found.problems:
        raise typer.Exit(WITH_PROBLEMS)


@features.command("merge")
def merge(
    stores: Annotated[list[Path], typer.Argument(help="Two or more stores of one encoder.")],
    out: Annotated[Path, typer.Option("--out", help="The new store.")],
    prefix: Annotated[
        bool, typer.Option("--prefix", help="Put each store's folder name before its file names.")
    ] = False,
) -> None:
    """Join stores made by the same encoder; other encoders are refused, also of equal width."""
    from transduce.features.merging import merge as merge_stores

    merged = merge_stores(stores, out, prefix=prefix)
    say(f"Wrote {folder_name(out)}  {len(merged):,} pictures from {len(stores)} stores")
