"""Make the trained encoder cautious, as CLIP is: `python -m training.calibrate`.

It was trained in one look until it made hardly an error there, so in another look it is far too
sure, where CLIP, by its own scale, expects more errors than it makes; the library is made for CLIP.
What is chosen here is the width of the cone alone, which multiplies all differences of cosines, by
images of the pairs it was trained on in the `shifted` look. The unseen pairs, those of the demo and
of all measurements, have no part in it, and no answer of zero-shot changes.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from jaxtyping import Float32
from onnx import numpy_helper
from scipy.optimize import brentq

from training.card import CARD, write_card
from training.drawn import draw_set
from training.measure import Features, embed_names, embed_set
from training.settings import Settings
from transduce.benchmark.synthetic import SEEN
from transduce.encoders.onnx import IMAGE_TOWER, SHAPES_FOLDER, TEXT_TOWER, OnnxEncoder
from transduce.simplex.probabilities import softmax

IMAGES = 3600
SEED = 31  # of training 7, of tests 2024
LOGIT_SCALE = Settings.logit_scale
# Errors that softmax(100 cos) is to expect for each it makes. CLIP's expects 1.7: results/trust.md;
# with a cone so narrow softmax(30 cos), where the paper's methods begin, would be flatter than
# CLIP's.
CAUTION = 1.4
NARROWEST, WIDEST = 0.05, 2.0


def calibrate(folder: Path, images: int = IMAGES) -> tuple[float, float]:
    """Set the cone of both towers to a cautious width; returns the widths before and after."""
    encoder = OnnxEncoder(folder)
    features = embed_set(encoder, draw_set(SEEN, images, "shifted", SEED), SEEN)
    names = embed_names(encoder, SEEN)
    before = float(1.0 - names[0, -1] ** 2)  # the last coordinate is the constant one
    after = round(before * cautious_factor(features, names), 3)
    for tower in (IMAGE_TOWER, TEXT_TOWER):
        set_cone(folder / tower, before, after)
    return before, after


def cautious_factor(features: Features, names: Float32[np.ndarray, "class feature"]) -> float:
    """Return the factor of the scores with which `CAUTION` errors are expected for each."""
    scores = LOGIT_SCALE * (features.images @ names.T)
    wanted = CAUTION * float((scores.argmax(1) != features.labels).mean())

    def excess(factor: float) -> float:
        return 1.0 - float(softmax(np.float32(factor) * scores).max(1).mean()) - wanted

    return float(brentq(excess, NARROWEST, WIDEST, xtol=1e-4))


def set_cone(path: Path, before: float, after: float) -> None:
    """Write another width into a tower, which has two constants of it: `towers.in_cone`."""
    model = onnx.load(path)
    constants = {before**0.5: after**0.5, (1.0 - before) ** 0.5: (1.0 - after) ** 0.5}
    found = 0
    for entry in model.graph.initializer:
        value = numpy_helper.to_array(entry)
        for old, new in constants.items():
            if value.shape == () and np.isclose(value, old, rtol=1e-6, atol=0.0):
                entry.CopyFrom(numpy_helper.from_array(np.float32(new).reshape(()), entry.name))
                found += 1
                break
    if found != len(constants):
        raise ValueError(
            f"Expected {len(constants)} constants of the cone in {path}, found {found}."
        )
    onnx.save(model, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Calibrate an encoder that is there, and measure it again."""
    parser = argparse.ArgumentParser(prog="python -m training.calibrate", description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHAPES_FOLDER)
    folder = parser.parse_args(arguments).folder
    took = re.search(r"It took (\d+) seconds", (folder / CARD).read_text(encoding="utf-8"))
    before, after = calibrate(folder)
    print(f"cone of {before:.3f} -> {after:.3f}", flush=True)
    print(write_card(folder, Settings(), float(took[1]) if took else 0.0, IMAGES, 300))


if __name__ == "__main__":
    main()
