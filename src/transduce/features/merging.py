"""Join stores of the same encoder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from transduce.encoders.hub import DownloadBar, no_bar
from transduce.errors import InvalidStore
from transduce.features.layout import META, Meta, Shard, Skip
from transduce.features.planning import check_same_encoder, lock
from transduce.features.store import FeatureStore
from transduce.features.writing import Row, finish, write_shard
from transduce.machine.atomic import sha256_of


def merge(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    prefix: bool = False,
    bar: DownloadBar = no_bar,
) -> FeatureStore:
    """Write the rows of the stores one after the other into a new store.

    With `prefix` each file name gets its store's folder name in front, so that equal names of
    different stores stay apart. `bar` shows the bytes of stores behind a URL, which are fetched.
    """
    if len(folders) < 2:
        raise InvalidStore(f"Expected at least two stores to merge, found {len(folders)}.")
    stores = [FeatureStore.open(folder, bar=bar) for folder in folders]
    first = stores[0]
    for store in stores[1:]:
        check_same_encoder(first.identity, store.identity, str(first.folder), str(store.folder))
    prefixes = [f"{store.folder.resolve().name}/" if prefix else "" for store in stores]
    _check_names_apart(stores, prefixes)
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise InvalidStore(f"Expected a new folder, found {out} with files in it; choose another.")
    with lock(out):
        shards, skipped = _copy(stores, prefixes, out)
        finish(out, _meta(stores), shards, skipped)
    return FeatureStore.open(out)


def _check_names_apart(stores: Sequence[FeatureStore], prefixes: Sequence[str]) -> None:
    owners: dict[str, FeatureStore] = {}
    for store, prefix in zip(stores, prefixes, strict=True):
        for key in store.keys():  # noqa: SIM118 - a store is no dict
            other = owners.setdefault(prefix + key, store)
            if other is not store:
                raise InvalidStore(
                    f"Expected different file names, found {prefix + key} in {other.folder} and "
                    f"in {store.folder}; add --prefix to put the folder's name in front."
                )


def _meta(stores: Sequence[FeatureStore]) -> Meta:
    ways = {store.meta.settings.decoding for store in stores}
    settings = replace(stores[0].meta.settings, decoding=ways.pop() if len(ways) == 1 else "mixed")
    return Meta(
        identity=stores[0].identity,
        settings=settings,
        parts=tuple(sha256_of(store.folder / META) for store in stores),
    )


def _copy(
    stores: Sequence[FeatureStore], prefixes: Sequence[str], out: Path
) -> tuple[list[Shard], list[Skip]]:
    shards: list[Shard] = []
    skipped: list[Skip] = []
    for store, prefix in zip(stores, prefixes, strict=True):
        for shard in store.meta.shards:
            table = store.shard_metadata(shard)
            rows = [replace(Row(**row), file_name=prefix + row["file_name"]) for row in table]
            embeddings = np.array(store.shard_embeddings(shard))
            shards.append(write_shard(out, len(shards), embeddings, rows))
        skipped += [replace(skip, file_name=prefix + skip.file_name) for skip in store.skipped()]
    return shards, skipped
