"""Draw a thing: outline, texture and background, turned, scaled and anti-aliased."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFilter

from transduce.benchmark.synthetic.outlines import outline
from transduce.benchmark.synthetic.things import COLORS, Thing

IMAGE_SIZE = 96
FINER = 4  # outlines are drawn this much larger and averaged down

Plane = Float[np.ndarray, "height width"]
Colors = Float[np.ndarray, "height width 3"]


@dataclass(frozen=True, slots=True)
class Look:
    """Conditions that drawings are made in; ranges are uniform."""

    backgrounds: tuple[str, ...]
    background_color: float  # 0: gray, 1: any color
    tint: float  # how far the light may lean to a color
    blur: tuple[float, float]  # in pixels
    noise: tuple[float, float]  # standard deviation, of 255
    shade: float  # how dark one side may be
    size: tuple[float, float]  # radius, of the image's width


LOOKS = {
    "training": Look(
        backgrounds=("plain", "gradient", "soft"),
        background_color=0.25,
        tint=0.05,
        blur=(0.0, 0.8),
        noise=(0.0, 8.0),
        shade=0.15,
        size=(0.24, 0.42),
    ),
    "shifted": Look(
        backgrounds=("waves", "tiles", "clouds"),
        background_color=0.3,
        tint=0.1,
        blur=(0.5, 1.5),
        noise=(30.0, 65.0),
        shade=0.4,
        size=(0.2, 0.42),
    ),
}


def draw(thing: Thing, look: Look, generator: np.random.Generator) -> Image.Image:
    """Return a drawing of the thing; the generator decides all that the thing leaves open."""
    inside = _mask(thing.shape, look, generator)[..., None]
    filling = _filling(thing, generator)
    drawing = inside * filling + (1 - inside) * _background(look, generator)
    return _photograph(drawing, look, generator)


def _mask(shape: str, look: Look, generator: np.random.Generator) -> Plane:
    fine = IMAGE_SIZE * FINER
    radius = fine * generator.uniform(*look.size)
    angle = generator.uniform(0, 2 * np.pi)
    room = max(fine / 2 - radius, 0.0)
    center = fine / 2 + generator.uniform(-0.8, 0.8, size=2) * room
    stretch = generator.uniform(0.88, 1.0, size=2) * radius
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    image = Image.new("L", (fine, fine))
    pen = ImageDraw.Draw(image)
    for polygon, ink in zip(outline(shape), (255, 0), strict=True):
        if polygon is not None:
            corners = (polygon * stretch) @ turn + center
            pen.polygon([(float(x), float(y)) for x, y in corners], fill=ink)
    return np.asarray(image.reduce(FINER), dtype=float) / 255.0


def _filling(thing: Thing, generator: np.random.Generator) -> Colors:
    color = np.array(COLORS[thing.color]) + generator.normal(0, 8, size=3)
    # A second tone of the same color: lighter on dark colors, darker on light ones.
    other = color + 60 if color.mean() < 110 else color * 0.68
    pattern = _pattern(thing.texture, generator)[..., None]
    return (1 - pattern) * color + pattern * other


def _pattern(texture: str, generator: np.random.Generator) -> Plane:
    """Return how much of the second tone each pixel has, 0 to 1."""
    if texture == "solid":
        return np.zeros((IMAGE_SIZE, IMAGE_SIZE))
    across, down = _turned_grid(generator)
    period = generator.uniform(9, 14)
    a, b = np.sin(2 * np.pi * across / period), np.sin(2 * np.pi * down / period)
    height = {"striped": a, "dotted": a + b - 0.9, "checkered": 2 * a * b}[texture]
    return np.clip(0.5 + 1.5 * height, 0, 1)  # soft edges are anti-aliased


def _background(look: Look, generator: np.random.Generator) -> Colors:
    kind = look.backgrounds[generator.integers(len(look.backgrounds))]
    first, second = (_background_tone(look, generator) for _ in range(2))
    across, down = _turned_grid(generator)
    share: Plane
    match kind:
        case "plain":
            share = np.zeros_like(across)
        case "gradient":
            share = np.clip(0.5 + across / IMAGE_SIZE, 0, 1)
        case "soft":
            share = _cloud(3, generator)
        case "clouds":
            share = 0.6 * _cloud(5, generator) + 0.4 * _cloud(14, generator)
        case "waves":
            bend = 4 * np.sin(2 * np.pi * down / generator.uniform(20, 40))
            share = 0.5 + 0.5 * np.sin(2 * np.pi * (across + bend) / generator.uniform(10, 30))
        case "tiles":
            width = generator.uniform(12, 28)
            waves = np.sin(np.pi * across / width) * np.sin(np.pi * down / width)
            share = np.clip(0.5 + 4 * waves, 0, 1)
        case _:
            raise KeyError(kind)
    return (1 - share[..., None]) * first + share[..., None] * second


def _background_tone(look: Look, generator: np.random.Generator) -> Float[np.ndarray, " 3"]:
    gray = np.full(3, generator.uniform(70, 205))
    return (1 - look.background_color) * gray + look.background_color * generator.uniform(
        30, 225, size=3
    )


def _cloud(cells: int, generator: np.random.Generator) -> Plane:
    coarse = Image.fromarray(generator.integers(0, 256, (cells, cells), dtype=np.uint8))
    smooth = coarse.resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BICUBIC)
    return np.asarray(smooth, dtype=float) / 255.0


def _turned_grid(generator: np.random.Generator) -> tuple[Plane, Plane]:
    angle = generator.uniform(0, np.pi)
    position = np.arange(IMAGE_SIZE) - generator.uniform(0.4, 0.6) * IMAGE_SIZE
    x, y = position[None, :], position[:, None]
    return np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x


def _photograph(drawing: Colors, look: Look, generator: np.random.Generator) -> Image.Image:
    """Apply light, lens and sensor: a tint, a shaded side, blur, noise."""
    light = 1 + generator.uniform(-look.tint, look.tint, size=3)
    across, _ = _turned_grid(generator)
    depth = generator.uniform(0, look.shade)
    shade = 1 - depth * np.clip(0.5 + across / IMAGE_SIZE, 0, 1)
    lit = drawing * light * shade[..., None]
    image = Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))
    blurred = image.filter(ImageFilter.GaussianBlur(generator.uniform(*look.blur)))
    grain = generator.normal(0, generator.uniform(*look.noise), size=drawing.shape)
    return Image.fromarray(np.clip(np.asarray(blurred) + grain, 0, 255).astype(np.uint8))
