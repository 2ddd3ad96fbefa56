"""Features made elsewhere, as a feature store: `import_features`, `open_features`.

They carry no proof of their encoder. With a declared encoder they get an identity in its name;
without one the identity is the hash of the file, so that they mix with nothing else.
"""

import csv
import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from transduce import validation
from transduce.encoders.class_names import ClassNames, class_names_from
from transduce.encoders.encoder import Identity
from transduce.encoders.hub import DownloadBar, no_bar
from transduce.encoders.precomputed import TEXTS, write_texts
from transduce.encoders.prompts import DEFAULT_TEMPLATE, sentences
from transduce.errors import InvalidStore, UnknownName
from transduce.features.arrays import Arrays, hash_of_arrays, read_arrays
from transduce.features.layout import META, Meta, Settings, Shard
from transduce.features.planning import FEWEST_ROWS, lock
from transduce.features.store import FeatureStore
from transduce.features.writing import Row, finish, seal, write_shard
from transduce.images.entries import is_url
from transduce.machine.atomic import cell_text, replace_csv, replace_json

# The names under which a file is searched where no option says more, best first.
EMBEDDING_KEYS = ("embeddings", "embedding", "features", "image_features", "img_emb", "vectors")
NAME_KEYS = ("file_name", "image_path", "path", "key", "keys", "filename", "url", "id")
LABEL_KEYS = ("labels", "label", "targets", "target")
CLASS_KEYS = ("classes", "class_names")
CLASS_EMBEDDING_KEYS = ("class_embeddings", "text_embeddings", "text_features")

UNKNOWN_ENCODER = "unknown"
LABELS = "labels.csv"
CLASSES = "classes.json"
SHARD_ROWS = 64 * FEWEST_ROWS


def open_features(
    path: str | Path,
    *,
    out: str | Path | None = None,
    encoder: str | None = None,
    bar: DownloadBar = no_bar,
) -> FeatureStore:
    """Open a feature store, or import features of another program first.

    Parameters
    ----------
    path : str or Path
        A feature store, also behind a URL that fsspec can read; a clip-retrieval folder, or a file
        .npz, .npy, .parquet or .pt.
    out : str or Path, optional
        Where imported features are written; by default in a temporary folder that is removed
        with the returned object. Not used for a store.
    encoder : str, optional
        The encoder that made imported features. Not used for a store, which says so itself.
    bar : DownloadBar, optional
        Shows the bytes of a store behind a URL while it is fetched; by default nothing is shown.

    Returns
    -------
    FeatureStore
        The store at `path`, or the new one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.savez(f"{folder.name}/mine.npz", embeddings=np.eye(3), file_name=["a", "b", "c"])
    >>> open_features(f"{folder.name}/mine.npz").keys()
    ['a', 'b', 'c']
    >>> folder.cleanup()
    """
    if is_url(path) or (Path(path) / META).is_file():
        return FeatureStore.open(path, bar=bar)
    path = Path(path)
    if out is not None:
        return import_features(path, out, encoder=encoder)
    folder = tempfile.mkdtemp(prefix="transduce-")
    try:
        store = import_features(path, folder, encoder=encoder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return store


def import_features(
    path: str | Path,
    out: str | Path,
    *,
    array: str | None = None,
    names: str | None = None,
    labels: str | None = None,
    classes: str | None = None,
    class_embeddings: str | None = None,
    encoder: str | None = None,
) -> FeatureStore:
    """Write the features of a file or folder of another program as a new feature store.

    Every option names an array of the file (a key of an .npz or .pt, a column of a table); all
    but `array` may name another file instead. Without an option the usual names are searched,
    such as `embeddings`, `file_name`, `labels`, `classes` and `class_embeddings`.

    Parameters
    ----------
    path : str or Path
        A clip-retrieval folder, or a file .npz, .npy, .parquet or .pt (read with torch's
        `weights_only`). Pickles with anything but tensors are refused.
    out : str or Path
        The folder of the new store.
    array : str, optional
        The image embeddings, shape (image, feature); rows are scaled to length 1.
    names : str, optional
        A name for each image. A file: .txt with a name a line, .npy, or .csv with a column
        `file_name`. By default the number of the row.
    labels : str, optional
        The true class of each image, as names or as numbers from 0 into `classes`; written to
        `labels.csv`, which `transduce label --truth` reads.
    classes : str, optional
        The class names in order; also as text with commas between, or a file that
        `--classes-file` takes. Written to `classes.json`.
    class_embeddings : str, optional
        The text embeddings of the classes, shape (class, feature); needs `classes`. Written to
        `texts.npz`, from which `precomputed:OUT` reads them for the default template.
    encoder : str, optional
        The encoder that made the features, such as "open_clip:ViT-B-32/openai". Needed where
        class names are to be embedded by that encoder.

    Returns
    -------
    FeatureStore
        The new store.

    Raises
    ------
    InvalidStore
        If the file cannot be read, or its arrays do not fit each other.
    UnknownName
        If an option names neither an array of the file nor another file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.savez(f"{folder.name}/mine.npz", x=np.eye(3), y=[0, 1, 0])
    >>> store = import_features(
    ...     f"{folder.name}/mine.npz", f"{folder.name}/store", array="x", labels="y",
    ...     classes="cat,dog",
    ... )
    >>> print((store.folder / "labels.csv").read_text(), end="")
    file_name,label
    mine.npz#0,cat
    mine.npz#1,dog
    mine.npz#2,cat
    >>> folder.cleanup()
    """
    path, out = Path(path), Path(out)
    arrays = read_arrays(path)
    rows = arrays[pick(path, _tables(arrays), array)]
    listed = _column("names", names, NAME_KEYS, arrays, "file_name")
    truth = _column("labels", labels, LABEL_KEYS, arrays, "label")
    class_names = _class_names(classes, arrays)
    width = int(rows.shape[1]) if rows.ndim == 2 else 0
    texts = _check_class_embeddings(_class_embeddings(class_embeddings, arrays), class_names, width)
    name_of_row = [f"{path.name}#{row}" for row in range(len(rows))] if listed is None else listed
    if truth is not None:
        truth = _label_names(truth, class_names, len(rows))
    identity = None
    if encoder is None:
        identity = _unknown(hash_of_arrays(path), width)
    store = import_arrays(
        rows, name_of_row, out, encoder=encoder, identity=identity, source=str(path)
    )
    if truth is not None:
        replace_csv(out / LABELS, ("file_name", "label"), zip(name_of_row, truth, strict=True))
    if class_names is not None:
        replace_json(out / CLASSES, dict(zip(class_names.labels, class_names.prompts, strict=True)))
    if texts is not None and class_names is not None:
        write_texts(out / TEXTS, sentences(class_names.prompts, DEFAULT_TEMPLATE), texts)
    return FeatureStore(out, seal(out, store.meta))


def import_arrays(
    rows: ArrayLike,
    names: Sequence[str],
    out: str | Path,
    *,
    encoder: str | None = None,
    identity: Identity | None = None,
    source: str = "",
) -> FeatureStore:
    """Write an array (image, feature) and a name for each row as a new feature store.

    Rows are scaled to length 1 and kept in float16. The identity is the one given, or that of a
    declared `encoder`, or the hash of the rows.
    """
    out = Path(out)
    unit = validation.unit_rows(f"the features of {source or out}", rows, error=InvalidStore)
    unit = unit.astype(np.float32, copy=False)
    if len(names) != len(unit):
        raise InvalidStore(
            f"Expected a name for each of {len(unit):,} rows in {source or out}, found "
            f"{len(names):,}."
        )
    if encoder is not None:
        identity = Identity.declared(encoder, unit.shape[1])
    elif identity is None:
        digest = hashlib.sha256(unit.tobytes()).hexdigest()
        identity = _unknown(digest, unit.shape[1])
    if out.exists() and any(out.iterdir()):
        raise InvalidStore(f"Expected a new folder, found {out} with files in it; choose another.")
    with lock(out):
        shards: list[Shard] = []
        for start in range(0, len(unit), SHARD_ROWS):
            part = slice(start, start + SHARD_ROWS)
            listed = [Row(str(name), "") for name in names[part]]
            shards.append(write_shard(out, len(shards), unit[part].astype(np.float16), listed))
        meta = finish(out, Meta(identity, Settings(0, "unknown"), source=source), shards, [])
    return FeatureStore(out, meta)


def _unknown(digest: str, dimension: int) -> Identity:
    return Identity(UNKNOWN_ENCODER, f"imported:{digest}", "unknown", dimension)


def pick(path: Path, names: Sequence[str], wanted: str | None = None) -> str:
    """Return the name of the embeddings: the wanted or only table, or a well-known name."""
    if wanted is not None:
        if wanted not in names:
            raise UnknownName("table of embeddings", wanted, names)
        return wanted
    if len(names) == 1:
        return names[0]
    for name in EMBEDDING_KEYS:
        if name in names:
            return name
    raise InvalidStore(
        f"Expected a table of embeddings in {path} (one row per image, best called "
        f"'embeddings'), found {', '.join(names) or 'none'}."
    )


def _tables(arrays: Arrays) -> list[str]:
    names = [name for name, array in arrays.items() if array.ndim == 2]
    images = [name for name in names if name not in CLASS_EMBEDDING_KEYS]
    return images or names


def _column(
    option: str, wanted: str | None, usual: Sequence[str], arrays: Arrays, column: str
) -> list[str] | None:
    """Return the values of an option as text: an array of the file, or another file."""
    if wanted is None:
        wanted = next((name for name in usual if name in arrays), None)
        if wanted is None:
            return None
    if wanted in arrays:
        return [str(value) for value in arrays[wanted].reshape(-1)]
    file = Path(wanted).expanduser()
    if not file.is_file():
        raise UnknownName(f"array or a file of {option}", wanted, arrays)
    if file.suffix.lower() == ".npy":
        return [str(value) for value in next(iter(read_arrays(file).values())).reshape(-1)]
    text = file.read_text(encoding="utf-8-sig")
    if file.suffix.lower() != ".csv":
        return [line.strip() for line in text.splitlines() if line.strip()]
    table = list(csv.DictReader(text.splitlines()))
    if not table or column not in table[0]:
        raise InvalidStore(
            f"Expected a column {column!r} in {file}, found "
            f"{', '.join(table[0]) if table else 'no rows'}; rename the column."
        )
    return [cell_text(row[column] or "") for row in table]


def _class_names(wanted: str | None, arrays: Arrays) -> ClassNames | None:
    key = wanted or next((name for name in CLASS_KEYS if name in arrays), None)
    if key is None:
        return None
    if key in arrays:
        return ClassNames.of(str(name) for name in arrays[key].reshape(-1))
    return class_names_from(key)


def _class_embeddings(wanted: str | None, arrays: Arrays) -> np.ndarray | None:
    key = wanted or next((name for name in CLASS_EMBEDDING_KEYS if name in arrays), None)
    if key is None:
        return None
    if key in arrays:
        return arrays[key]
    file = Path(key).expanduser()
    if not file.exists():
        raise UnknownName("array or a file of class embeddings", key, arrays)
    others = read_arrays(file)
    tables = [name for name, array in others.items() if array.ndim == 2]
    known = [name for name in CLASS_EMBEDDING_KEYS if name in tables]
    return others[known[0] if known else pick(file, tables)]


def _label_names(labels: list[str], classes: ClassNames | None, rows: int) -> list[str]:
    """Return the class of each row by name; numbers count into the classes."""
    if len(labels) != rows:
        raise InvalidStore(f"Expected a label for each of {rows:,} rows, found {len(labels):,}.")
    if classes is None:
        return labels
    by_number = {str(index): label for index, label in enumerate(classes.labels)}
    names = labels
    if not set(labels) <= set(classes.labels):
        names = [by_number.get(label, label) for label in labels]
    unknown = sorted(set(names) - set(classes.labels))
    if unknown:
        raise UnknownName("class as a label", unknown[0], classes.labels)
    return names


def _check_class_embeddings(
    rows: np.ndarray | None, classes: ClassNames | None, width: int
) -> np.ndarray | None:
    if rows is None:
        return None
    if classes is None:
        raise InvalidStore("Expected the classes of the class embeddings, found none; name them.")
    if rows.shape != (len(classes), width):
        raise InvalidStore(
            f"Expected class embeddings of shape {(len(classes), width)} (class, feature), found "
            f"{rows.shape}; transpose them, or check that they come from the same encoder."
        )
    return validation.unit_rows("the class embeddings", rows, error=InvalidStore)
