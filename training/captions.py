"""Captions of drawings: the sentences that the shapes encoder was trained on."""

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
    """A sentence, and what it says of shape, color and texture (None: nothing)."""

    sentence: str
    facts: tuple[str | None, str | None, str | None]

    def is_true_of(self, thing: Thing) -> bool:
        """Return whether nothing in the sentence contradicts the thing."""
        return all(word in (None, fact) for word, fact in zip(self.facts, thing, strict=True))


def caption(thing: Thing, generator: np.random.Generator) -> Caption:
    """Return a random sentence that is true of the thing."""
    telling = TELLINGS[generator.choice(len(TELLINGS), p=CHANCES)]
    words = [getattr(thing, field) for field in telling]
    if "shape" not in telling:
        words.append("thing")
    template = TEMPLATES[generator.integers(len(TEMPLATES))]
    facts = [fact if field in telling else None for field, fact in thing._asdict().items()]
    return Caption(template.format(" ".join(words)), (facts[0], facts[1], facts[2]))
