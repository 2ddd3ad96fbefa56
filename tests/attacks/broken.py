"""Broken input of every kind, each made from a number, and what reads it.

`KINDS[name](folder)` prepares a kind and returns a function: a source of chance in, out comes the
message with which the input was refused ("" if it was taken), and anything else is a surprise. The
tests try some of each, `python -m benchmarks.attacks` thousands.
"""

import io
import json
import random
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.attacks.broken_requests import http
from tests.attacks.mutations import mutated, tree
from tests.attacks.outcomes import refused
from tests.images.pictures import encoded, picture, write_pictures
from tests.labeling.report.small_runs import small_run
from tests.labeling.stores import NAMES, write_simulated
from transduce.encoders.class_names import class_names_from, read_class_names
from transduce.encoders.encoder import Preprocessing
from transduce.errors import InvalidFile
from transduce.features.importing import open_features
from transduce.features.layout import read_meta
from transduce.features.verification import verify_store
from transduce.features.writing import seal
from transduce.images.decoding import Decoding, decode, known_formats
from transduce.images.entries import Unreadable
from transduce.images.sources import find_images
from transduce.labeling.files import read_labeled
from transduce.labeling.inputs import read_inputs
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings, read_settings, to_toml

IMAGES = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF", "JPEG2000", "ICO", "QOI")


def images(folder):
    known_formats()  # registers HEIF with Pillow
    whole = [encoded(picture(seed), kind) for kind in IMAGES for seed in range(3)]
    whole += [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"GIF89a", b"\x89PNG\r\n\x1a\n"]
    how = Decoding(Preprocessing(size=32), most_pixels=1 << 22)

    def attempt(chance):
        try:
            decode(mutated(chance.choice(whole), chance), how)
        except Unreadable as error:
            return f"Expected an image, found {error}" if error.reason else "no reason"
        return ""

    return attempt


LAUGHS = "a: &a [x,x]\n" + "".join(
    f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
    for a, b in zip("abcdefghijkl", "bcdefghijklm", strict=True)
)
ODD_CLASSES = {
    ".json": [
        "[" * 100_000,
        '{"a":' * 50_000,
        '["a","b"',
        '{"a":1,"a":2}',
        '"' + "x" * 10**6,
        "9" * 9999,
    ],
    ".yaml": [
        LAUGHS,
        "a: &a [*a]",
        "? [a]\n: b",
        "- " * 20_000,
        "{" * 5000,
        "!!python/object:os.x {}",
        "&a [*a, *a]",
        "? {a: b}\n: c",
        "a: 2020-13-45",
        "\t- a",
        "- !!binary x",
        "<<: 1\na: b",
    ],
    ".csv": [
        "class\n" + "x" * 200_000,
        'class,prompt\n"a',
        "class,prompt\na\nb",
        "\0,\0\n",
        "a,b\nc",
    ],
    ".txt": ["\0\n\0b", "# only\n", "a\n" * 3, "a" * 300_000 + "\nb", "\ufeffa\nb"],
}


def classes(folder):
    def attempt(chance):
        if chance.random() < 0.1:
            words = [
                "x" * chance.choice([1, 300, 5000]) + str(k) for k in range(chance.randint(0, 9))
            ]
            return refused(class_names_from, chance.choice([",", ", ", ".", "\0", "/"]).join(words))
        kind = chance.choice([*ODD_CLASSES])
        text = chance.choice(ODD_CLASSES[kind])
        if chance.random() < 0.7:
            text = (
                json.dumps(tree(chance)) if kind in (".json", ".yaml") else "class\ncat\ndog\nfox\n"
            )
        data = text.encode("utf-8", "surrogatepass")
        if chance.random() < 0.5 and len(data) < 10_000:
            data = mutated(data, chance)
        (folder / f"classes{kind}").write_bytes(data)
        return refused(read_class_names, folder / f"classes{kind}")

    return attempt


def tables(folder):
    """CSVs: the truth, and lists of images."""
    write_pictures(folder / "photos", 2)
    rows = "file_name,label\nphotos/00000.jpg,cat\nphotos/00001.jpg,dog\n"
    odd = [
        "file_name\n" + "x" * 200_000 + "\n",
        'file_name,label\n"a',
        "\0",
        "file_name\n\0\n",
        "file_name,file_name\na,b\n",
        rows.replace(",", "\t"),
        "label\ncat\n",
        "file_name\na,b,c\n",
    ]

    def attempt(chance):
        text = chance.choice([rows, rows, *odd])
        name = chance.choice(["list.csv", "list.tsv", "list.txt"])
        (folder / name).write_bytes(mutated(text.encode(), chance))
        if name == "list.csv" and chance.random() < 0.5:
            return refused(read_labeled, folder / name)
        return refused(find_images, str(folder / name))

    return attempt


def stores(folder):
    """Damaged feature stores and files of other programs' features."""
    write_simulated(folder / "whole", images=40)
    seal(folder / "whole", read_meta(folder / "whole"))  # with the embeddings of its sentences
    names = [path.relative_to(folder / "whole") for path in (folder / "whole").rglob("*.*")]
    names = [name for name in names if (folder / "whole" / name).is_file() and name.name[0] != "."]
    rows = np.eye(8, dtype=np.float32)
    np.savez(folder / "mine.npz", embeddings=rows, file_name=[f"{k}.jpg" for k in range(8)])
    np.savez_compressed(folder / "small.npz", embeddings=rows, labels=np.arange(8))
    np.save(folder / "mine.npy", rows)

    def attempt(chance):
        if chance.random() < 0.5:
            source = folder / chance.choice(["mine.npz", "small.npz", "mine.npy"])
            broken = folder / f"broken{source.suffix}"
            broken.write_bytes(mutated(source.read_bytes(), chance))
            return refused(lambda: np.asarray(open_features(broken)))
        store = folder / "store"
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(folder / "whole", store)
        path = store / chance.choice(names)
        path.write_bytes(mutated(path.read_bytes(), chance))
        message = refused(_read_store, store)
        problems = refused(_verify, store)
        assert (
            problems
            or (folder / "whole" / path.relative_to(store)).read_bytes() == path.read_bytes()
        )
        return message or problems

    return attempt


def _read_store(folder):
    store = open_features(folder)
    return store.embeddings(), store.metadata(), store.skipped()


def _verify(folder):
    problems = verify_store(folder).problems
    if problems:
        raise InvalidFile(f"Expected a whole store, found {problems[0]}")


def parquet(folder):
    """Tables with a list of files, with images inside, and with features; and tar archives."""
    image = encoded(picture())
    for name, columns in {
        "list.parquet": {"file_name": ["a.jpg", "b.jpg", None]},
        "images.parquet": {"image": [{"bytes": image, "path": "a.jpg"}] * 3, "label": [0, 1, 2]},
        "bytes.parquet": {"picture": pa.array([image] * 2, pa.binary())},
        "features.parquet": {"embeddings": np.eye(4).tolist(), "file_name": list("abcd")},
    }.items():
        pq.write_table(pa.table(columns), folder / name)
    with tarfile.open(folder / "photos.tar", "w") as archive:
        for number in range(3):
            member = tarfile.TarInfo(f"{number}.jpg")
            member.size = len(image)
            archive.addfile(member, io.BytesIO(image))
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "broken").mkdir()

    def attempt(chance):
        name = chance.choice(sorted(whole))
        path = folder / "broken" / name
        data = bytearray(mutated(whole[name], chance))
        if (
            chance.random() < 0.5 and len(whole[name]) > 60
        ):  # in the footer, which says what is where
            data = bytearray(whole[name])
            for _ in range(chance.randint(1, 6)):
                data[-chance.randint(1, min(600, len(data)))] = chance.randrange(256)
        path.write_bytes(data)
        if name == "features.parquet":
            return refused(lambda: np.asarray(open_features(path)))
        return refused(find_images, str(path))

    return attempt


VALUES = (
    '"many"',
    '"hot"',
    "0.0",
    "-5",
    "1e300",
    "true",
    "5",
    "[]",
    "[1]",
    '"/nonexistent"',
    "nan",
    "inf",
    "{}",
    "1979-05-27",
    '"' + "x" * 5000 + '"',
    '"\\u0000"',
    "[[[[[]]]]]",
    '"auto"',
    "-1",
    '["a", "a"]',
    '["{}"]',
    "99999999999999999999",
    '"maybe"',
)


def settings(folder):
    write_simulated(folder / "features", images=20)
    text = to_toml(
        LabelSettings(
            source="", classes=NAMES, prompts=NAMES, features=str(folder / "features"), encoder=""
        )
    )

    def attempt(chance):
        lines = text.splitlines()
        for _ in range(chance.randint(1, 3)):
            number = chance.randrange(len(lines))
            key, equals, _ = lines[number].partition(" = ")
            lines[number] = f"{key} = {chance.choice(VALUES)}" if equals else lines[number]
        data = "\n".join(lines).encode()
        if chance.random() < 0.3:
            data = mutated(data, chance)
        if chance.random() < 0.02:
            data += b"\nx = " + b"[" * 3000
        (folder / "run.toml").write_bytes(data)
        return refused(_use_settings, folder / "run.toml")

    return attempt


def _use_settings(path):
    given = read_settings(path)
    if not given.source and not given.truth and not given.view:
        read_inputs(given)


def runs(folder):
    """Damaged run directories, loaded with all that is read of them."""
    whole = small_run(folder, images=6).folder
    names = sorted(path.name for path in whole.iterdir() if path.is_file())

    def attempt(chance):
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        path = copy / chance.choice(names)
        path.write_bytes(mutated(path.read_bytes(), chance))
        return refused(_read_run, copy)

    return attempt


def _read_run(folder):
    run = RunDirectory.load(folder)
    run.corrections(), run.skipped()
    if (folder / "model.safetensors").exists():
        run.model()


KINDS = {
    "images": images,
    "class files": classes,
    "CSV and lists": tables,
    "stores and features": stores,
    "parquet and tar": parquet,
    "run.toml": settings,
    "run directories": runs,
    "HTTP": http,
}


def try_kind(name, folder, count, seed=0):
    """Try so many inputs of a kind; returns (taken, refused, surprises as text)."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    attempt = KINDS[name](Path(folder))
    taken, rejected, surprises = 0, 0, []
    for number in range(count):
        try:
            message = attempt(random.Random(f"{name} {seed} {number}"))
        except Exception as error:
            surprises.append(f"{name} {seed} {number}: {type(error).__name__}: {str(error)[:300]}")
            continue
        taken, rejected = (taken + 1, rejected) if not message else (taken, rejected + 1)
        if message and "Expected " not in message:
            surprises.append(f"{name} {seed} {number}: unclear: {message[:300]}")
    return taken, rejected, surprises
