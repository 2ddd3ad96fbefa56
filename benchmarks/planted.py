"""Simulated embeddings of any number, drawn block by block: planted classes with CLIP's habits.

Classes come in groups that look alike. Images lie in a cone, lean to their group, their class and
one of its scenes, and vary along a few directions that all classes share. Names point well to the
group and only roughly to the class, and they hear of the shared directions too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

WIDTH = 512
BLOCK = 8192
GROUP = 20  # classes that look alike
SCENES, TABLE = 20, 4096  # scenes of a class; directions that scenes are made of
DIRECTIONS = 24  # along which all images vary
CONE, GROUPED, OWN, SCENE, VARIATION, NOISE = 2.0, 0.8, 0.6, 0.35, 0.6, 0.3
NAMED_GROUP, NAMED, NAMED_DIRECTIONS = 0.3, 0.2, 0.3  # what a name says


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True)
class Planted:
    """Where classes are, and how their images vary."""

    n_classes: int
    present: int
    seed: int = 0

    def _directions(self, name: int, count: int) -> np.ndarray:
        random = np.random.default_rng([self.seed, name])
        return _unit(random.standard_normal((count, WIDTH), dtype=np.float32))

    @cached_property
    def _world(self) -> dict[str, np.ndarray]:
        sizes = {
            "cone": 1,
            "groups": -(-self.n_classes // GROUP),
            "own": self.n_classes,
            "along": DIRECTIONS,
            "scenes": TABLE,
        }
        return {
            name: self._directions(number, size)
            for number, (name, size) in enumerate(sizes.items())
        }

    def texts(self) -> np.ndarray:
        """Unit embeddings (class, feature) of the names."""
        world, random = self._world, np.random.default_rng([self.seed, 10])
        group = np.arange(self.n_classes) // GROUP
        heard = random.standard_normal((self.n_classes, DIRECTIONS), dtype=np.float32)
        rows = CONE * world["cone"] + NAMED_GROUP * world["groups"][group] + NAMED * world["own"]
        return _unit(rows + NAMED_DIRECTIONS / DIRECTIONS**0.5 * heard @ world["along"])

    def block(self, number: int, size: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
        """Unit rows (image, feature) of a block and their classes, whatever else is drawn."""
        world, random = self._world, np.random.default_rng([self.seed, 11, number])
        labels = random.integers(0, self.present, size)
        scene = random.integers(0, SCENES, size) + SCENES * labels
        rows = CONE * world["cone"] + GROUPED * world["groups"][labels // GROUP]
        rows += OWN * world["own"][labels]
        table = world["scenes"]
        rows += SCENE * (table[scene * 7919 % TABLE] + table[scene * 104729 % (TABLE - 3)])
        varied = random.standard_normal((size, DIRECTIONS), dtype=np.float32)
        rows += VARIATION / DIRECTIONS**0.5 * varied @ world["along"]
        rows += NOISE / WIDTH**0.5 * random.standard_normal((size, WIDTH), dtype=np.float32)
        return _unit(rows), labels
