"""Datasets of a few tiny pictures, laid out as the large ones are."""

import json

from tests.images.pictures import encoded, picture

SPLIT_FILE = "split_zhou_Tiny.json"
CARD = """
title = "Tiny"
layout = "coop-json"
folder = "tiny"
images = "images"
index = "split_zhou_Tiny.json"
needs = ["images", "split_zhou_Tiny.json"]
template = "a photo of a {}, a type of pet."
class_names = "in the split file"
classes = 3
counts = { train = 6, val = 3, test = 6 }
homepage = "https://example.org"
license = "drawn by the tests"
"""
CLASSES = ["tabby_cat", "red fox", "Gray Wolf"]
PER_CLASS = {"train": 2, "val": 1, "test": 2}


def draw_picture(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(picture(seed, size=(6, 5))))


def rows():
    """The split file's contents: 15 pictures of three classes."""
    return {
        split: [
            [f"{name}/{split}_{number}.jpg", label, name]
            for label, name in enumerate(CLASSES)
            for number in range(count)
        ]
        for split, count in PER_CLASS.items()
    }


def draw_coop(data):
    """The miniature of a dataset with CoOp's split file, in the data root."""
    folder = data / "tiny"
    for seed, row in enumerate(row for split in rows().values() for row in split):
        draw_picture(folder / "images" / row[0], seed)
    (folder / SPLIT_FILE).write_text(json.dumps(rows()))
    return folder


def draw_aircraft(data):
    folder = data / "fgvc_aircraft"
    variants = ["707-320", "A330-200", "Boeing 717"]
    seed = 0
    for split in ("train", "val", "test"):
        lines = []
        for name in reversed(variants):
            seed += 1
            draw_picture(folder / "images" / f"{seed:07d}.jpg", seed)
            lines.append(f"{seed:07d} {name}")
        (folder / f"images_variant_{split}.txt").write_text("\n".join(lines) + "\n")
    (folder / "variants.txt").write_text("\n".join(variants) + "\n")
    return folder


def draw_imagenet(data):
    folder = data / "imagenet"
    lines = ["n01443537 goldfish", "n01440764 tench", "n02012849 crane bird"]
    for seed, line in enumerate(lines):
        identifier = line.split()[0]
        draw_picture(folder / "images" / "val" / identifier / "one.JPEG", seed)
        for number in range(2):
            place = folder / "images" / "train" / identifier / f"{identifier}_{number}.JPEG"
            draw_picture(place, seed + 10 * number)
    (folder / "classnames.txt").write_text("\n".join(lines) + "\n")
    return folder
