"""The map of the report: images as dots, alike ones together, with pictures to hover over.

Positions in the plane are by t-SNE (van der Maaten & Hinton, 2008), exact, of at most 600 images;
each further image is put among those of them that it is most like. Seeded by its start, the first
two principal components. A second or two, with nothing but matrix products.
"""

import base64
import io
import json
import shlex
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int
from markupsafe import Markup
from PIL import Image

from transduce.errors import TransduceError
from transduce.images.entries import Unreadable
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names
from transduce.simplex.threads import one_blas_thread

MOST_POINTS = 2000
MOST_PICTURES = 300  # beyond those that the page carries anyway
TILE, TILES_ACROSS, QUALITY = 72, 20, 62
WIDTH, HEIGHT = 1000, 620
COLORS = 10  # classes with a color of their own; more would look alike

MOST_PLACED = 600  # by t-SNE itself, which takes time with the square of their number
PERPLEXITY = 20.0
STEPS, EARLY = 260, 70
EXAGGERATION = 8.0
ALIKE = 4  # placed images that decide where another one goes

Positions = Float[np.ndarray, "image 2"]
Rows = Float32[np.ndarray, "image feature"]
Square = Float32[np.ndarray, "image image"]


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
    """Return one picture with a tile for each image, and the number of the tile of each row."""
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


def plane_positions(rows: Rows, seed: int = 0) -> Positions:
    """Return where to draw each image, within the unit square.

    Parameters
    ----------
    rows : array of shape (image, feature)
        Unit vectors.
    seed : int
        Decides which images are placed first, if there are many.
    """
    if len(rows) < 4:
        return np.linspace([0.3, 0.5], [0.7, 0.5], max(2, len(rows)))[: len(rows)]
    generator = np.random.default_rng(seed)
    first = np.arange(len(rows))
    if len(rows) > MOST_PLACED:
        first = np.sort(generator.choice(len(rows), MOST_PLACED, replace=False))
    with one_blas_thread(0):  # products this small take longer when they are shared out
        placed = _tsne(rows[first])
        if len(first) < len(rows):
            placed = _between(rows, first, placed, generator)
    return _within_square(placed)


def _tsne(rows: Rows) -> Positions:
    alike = _likeness(rows)
    positions = _principal(rows)
    moved, gains = np.zeros_like(positions), np.ones_like(positions)
    for step in range(STEPS):
        weights = alike * np.float32(EXAGGERATION) if step < EARLY else alike
        slope = _slope(positions, weights)
        gains = np.where(slope * moved < 0, gains + 0.2, np.maximum(0.05, gains * 0.8))
        moved = (0.5 if step < EARLY else 0.8) * moved - len(rows) / 8.0 * gains * slope
        positions = positions + moved
        positions -= positions.mean(0)
    return positions.astype(np.float64)


def _slope(
    positions: Float32[np.ndarray, "image 2"], alike: Square
) -> Float32[np.ndarray, "image 2"]:
    """Return the gradient of the Kullback-Leibler divergence, up to a factor."""
    square = (positions**2).sum(1)
    near = 1.0 / (1.0 + np.maximum(square[:, None] + square - 2.0 * positions @ positions.T, 0.0))
    np.fill_diagonal(near, 0.0)
    forces = (alike - near / near.sum()) * near
    return 4.0 * (forces.sum(1)[:, None] * positions - forces @ positions)


def _likeness(rows: Rows) -> Square:
    """Return the joint probabilities of pairs, each image with PERPLEXITY neighbors."""
    distance = np.maximum(2.0 - 2.0 * (rows @ rows.T), 0.0).astype(np.float64)
    np.fill_diagonal(distance, np.inf)
    distance -= distance.min(1, keepdims=True)
    wanted = np.log(min(PERPLEXITY, (len(rows) - 1) / 3.0))
    low, high = np.zeros(len(rows)), np.full(len(rows), np.inf)
    sharpness = np.full(len(rows), 10.0)
    for _ in range(40):
        shares = np.exp(-distance * sharpness[:, None])
        total = shares.sum(1)
        inner = np.where(np.isfinite(distance), distance, 0.0)
        entropy = np.log(total) + sharpness * (inner * shares).sum(1) / total
        wide = entropy > wanted
        low = np.where(wide, sharpness, low)
        high = np.where(wide, high, sharpness)
        sharpness = np.where(np.isinf(high), sharpness * 2.0, (low + np.minimum(high, 1e12)) / 2.0)
    shares /= shares.sum(1, keepdims=True)
    return ((shares + shares.T) / (2.0 * len(rows))).astype(np.float32)


def _principal(rows: Rows) -> Float32[np.ndarray, "image 2"]:
    """Return the first two principal components, small."""
    centered = rows - rows.mean(0)
    values, vectors = np.linalg.eigh(centered @ centered.T)
    positions = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 1e-12))
    # The sign of an eigenvector is arbitrary; one rule makes the picture repeatable.
    positions *= np.where(positions[np.abs(positions).argmax(0), [0, 1]] < 0, -1.0, 1.0)
    spread = max(float(positions[:, 0].std()), 1e-12)
    return (positions / spread * 1e-2).astype(np.float32)


def _between(
    rows: Rows, first: np.ndarray, placed: Positions, generator: np.random.Generator
) -> Positions:
    """Place all rows: the others near the placed ones that they are most like."""
    cosines = rows @ rows[first].T
    best = np.argpartition(-cosines, ALIKE - 1, axis=1)[:, :ALIKE]
    weights = np.exp(30.0 * (np.take_along_axis(cosines, best, 1) - 1.0)).astype(np.float64)
    weights /= weights.sum(1, keepdims=True)
    # The median of its likest, as it were: a mean would fall between two groups.
    nearest = placed[best[np.arange(len(rows)), weights.argmax(1)]]
    mean = (weights[:, :, None] * placed[best]).sum(1)
    close = ((mean - nearest) ** 2).sum(1) < placed.var(0).sum() / 50.0
    positions = np.where(close[:, None], mean, nearest)
    positions += generator.normal(0.0, 0.006 * np.ptp(placed, axis=0), positions.shape)
    positions[first] = placed
    return positions


def _within_square(positions: Positions) -> Positions:
    """Scale to the unit square; the farthest hundredth is brought in to the edge."""
    low, high = np.percentile(positions, [0.5, 99.5], axis=0)
    return np.clip((positions - low) / np.maximum(high - low, 1e-12), 0.0, 1.0) * 0.96 + 0.02
