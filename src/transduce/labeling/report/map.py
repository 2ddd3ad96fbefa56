"""The map of the report: images as dots, alike ones together, with pictures to hover over."""

import base64
import io
import json
import shlex
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from markupsafe import Markup
from PIL import Image

from transduce.errors import TransduceError
from transduce.images.entries import Unreadable
from transduce.labeling.report.layout import plane_positions
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names

MOST_POINTS = 2000
MOST_PICTURES = 300  # beyond those that the page carries anyway
TILE, TILES_ACROSS, QUALITY = 72, 20, 62
WIDTH, HEIGHT = 1000, 620
COLORS = 10  # classes with a color of their own; more could not be told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class MapClass:
    """A class on the map."""

    label: str
    images: int  # on the map
    color: str  # a class of the style sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMap:
    """The dots of the map and what is known of them."""

    drawing: Markup
    data: Markup  # JSON for the script
    classes: tuple[MapClass, ...]  # the largest first
    images: int  # on the map
    left_out: int
    pictures: str  # data: URL of the pictures that are not elsewhere on the page; "" for none
    command: str  # reviews a list of images

    @property
    def tile(self) -> int:
        """The pixels of a picture, wide and high."""
        return TILE


def image_map(run: RunDirectory, on_page: Collection[int]) -> ImageMap | None:
    """Return the map of a run; None where its embeddings are gone.

    `on_page` are the rows whose pictures the page carries anyway.
    """
    rows = _sample(run)
    try:
        store = run.store()
        embeddings = np.concatenate([block for _, block in store.unit_blocks(rows)])
    except (TransduceError, OSError):
        return None
    where = plane_positions(embeddings.astype(np.float32), run.settings.seed)
    labels = run.labels.label[rows]
    classes = _classes(labels, label_names(run.classes))
    colors = {entry.label: entry.color for entry in classes}
    names = label_names(run.classes)
    pictures, tiles = _pictures(run, rows, on_page)
    at = np.rint(where * (WIDTH, HEIGHT)).astype(int)
    check = run.labels.needs_review[rows]
    dots = "".join(
        f'<circle class="{colors[names[label]]}{" check" if doubted else ""}" '
        f'cx="{x}" cy="{y}" r="5"/>'
        for (x, y), label, doubted in zip(at.tolist(), labels, check, strict=True)
    )
    data = {
        "rows": rows.tolist(),
        "names": [run.labels.file_name[row] for row in rows],
        "classes": [entry.label for entry in classes],
        "labels": [list(colors).index(names[label]) for label in labels],
        "doubts": [round(float(doubt), 3) for doubt in run.labels.doubt[rows]],
        "tiles": tiles,
        "across": TILES_ACROSS,
    }
    about = f"Map of {len(rows):,} images: those that look alike lie together"
    folder = run.folder.with_name(run.folder.name.lstrip("."))
    return ImageMap(
        drawing=Markup(
            f'<svg id="map" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}">'
            f'{dots}<path id="lasso" d=""/></svg>'
        ),
        data=Markup(json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")),
        classes=classes,
        images=len(rows),
        left_out=len(run.labels) - len(rows),
        pictures=pictures,
        command=shlex.join(["transduce", "review", str(folder), "--only", "selection.txt"]),
    )


def _sample(run: RunDirectory) -> Int[np.ndarray, " image"]:
    """Return the rows of the map: all, or a random part."""
    n_images = len(run.labels)
    if n_images <= MOST_POINTS:
        return np.arange(n_images)
    generator = np.random.default_rng(run.settings.seed)
    return np.sort(generator.choice(n_images, MOST_POINTS, replace=False))


def _classes(labels: Int[np.ndarray, " image"], names: tuple[str, ...]) -> tuple[MapClass, ...]:
    indices, counts = np.unique(labels, return_counts=True)
    order = np.lexsort((indices, -counts))
    classes = []
    for rank, position in enumerate(order):
        index = int(indices[position])
        color = f"c{rank}" if rank < COLORS and index != UNKNOWN else "other"
        classes.append(MapClass(label=names[index], images=int(counts[position]), color=color))
    return tuple(classes)


def _pictures(
    run: RunDirectory, rows: Int[np.ndarray, " image"], on_page: Collection[int]
) -> tuple[str, dict[int, int]]:
    """Return one picture of small ones, and the number of the tile of each row in it."""
    missing = [int(row) for row in rows if int(row) not in on_page]
    if len(missing) > MOST_PICTURES:
        generator = np.random.default_rng(run.settings.seed)
        missing = sorted(generator.choice(missing, MOST_PICTURES, replace=False).tolist())
    if not run.can_be_seen or not missing:
        return "", {}
    images, tiles, small = RunImages(run), dict[int, int](), list[Image.Image]()
    for row in missing:
        try:
            data = images.jpeg(row, TILE, QUALITY + 20)
        except Unreadable:
            continue
        tiles[row] = len(small)
        small.append(Image.open(io.BytesIO(data)))
    if not small:
        return "", {}
    down = -(-len(small) // TILES_ACROSS)
    sheet = Image.new("RGB", (TILE * min(len(small), TILES_ACROSS), TILE * down), "#888")
    for number, image in enumerate(small):
        x, y = number % TILES_ACROSS * TILE, number // TILES_ACROSS * TILE
        sheet.paste(image, (x + (TILE - image.width) // 2, y + (TILE - image.height) // 2))
    written = io.BytesIO()
    sheet.save(written, "JPEG", quality=QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}", tiles
