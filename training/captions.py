"""Sentences about things: what the embedded encoder learnt to read."""

from dataclasses import dataclass

import numpy as np

from transduce.benchmark.synthetic.things import COLORS, SHAPES, TEXTURES, Thing

TEMPLATES = (
    "a {}.",
    "a photo of a {}.",
    "a picture of a {}.",
    "a drawing of a {}.",
    "an image of the {}.",
    "a photo of the {}.",
    "this is a {}.",
    "there is one {} in this picture.",
)
# What a caption tells, and how often: mostly the pair, at times more or less.
TELLINGS = (("color", "shape"), ("texture", "color", "shape"), ("shape",), ("color",))
CHANCES = (0.6, 0.2, 0.1, 0.1)
ABOUT = (
    "It knows only a small drawn world, in which every picture shows one thing: a shape of a "
    "color, filled with a texture."
)
_FILLERS = {word.strip(".") for template in TEMPLATES for word in template.split()} - {"{}"}
WORDS = {
    "shapes": list(SHAPES),
    "colors": list(COLORS),
    "textures": list(TEXTURES),
    "other words": [*sorted(_FILLERS), "thing"],
}


@dataclass(frozen=True, slots=True)
class Caption:
    """A sentence, and the part of a thing it tells (None: left open)."""

    sentence: str
    told: tuple[str | None, str | None, str | None]  # shape, color, texture, as in Thing

    def is_true_of(self, thing: Thing) -> bool:
        return all(word in (None, fact) for word, fact in zip(self.told, thing, strict=True))


def caption(thing: Thing, generator: np.random.Generator) -> Caption:
    """A sentence that is true of the thing."""
    telling = TELLINGS[generator.choice(len(TELLINGS), p=CHANCES)]
    words = [getattr(thing, field) for field in telling]
    if "shape" not in telling:
        words.append("thing")
    template = TEMPLATES[generator.integers(len(TEMPLATES))]
    told = [fact if field in telling else None for field, fact in thing._asdict().items()]
    return Caption(template.format(" ".join(words)), (told[0], told[1], told[2]))
