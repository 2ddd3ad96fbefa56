"""`transduce import-pickle`: published features out of a pickle, safely."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import folder_name, say


def import_pickle(
    path: Annotated[Path, typer.Argument(help="A .plk or .pkl file of arrays.")],
    out: Annotated[Path, typer.Option("--out", help="An .npz file, or a folder for a store.")],
    array: Annotated[
        str | None, typer.Option("--array", help="For a store: which array holds the features.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="For a store: the encoder that made them.")
    ] = None,
) -> None:
    """Turn pickled features into an .npz or a feature store.

    Only NumPy arrays and torch tensors are read; anything else in the pickle is refused by name
    and nothing of it is run.
    """
    from transduce.features.importers import named, pick, write_npz, write_store
    from transduce.features.pickles import read_pickle

    arrays = read_pickle(path)
    say(*(f"  {name}  {value.dtype} {value.shape}" for name, value in arrays.items()))
    if out.suffix == ".npz":
        write_npz(out, arrays)
        say(f"Wrote {out}  {len(arrays)} arrays")
        return
    tables = [name for name, value in arrays.items() if value.ndim == 2]
    chosen = pick(path, tables, array)
    store = write_store(
        named(path, None, arrays[chosen], encoder=encoder), out, source=f"{path.name}:{chosen}"
    )
    say(f"Wrote {folder_name(out)}  {len(store):,} rows x {store.dimension} numbers")
