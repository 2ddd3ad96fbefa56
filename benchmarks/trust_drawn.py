"""What the doubts expect in the drawn world of `transduce demo`, draw after draw.

And how cautious CLIP is on photographs, which the encoder of that world is made to be, too.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from benchmarks.record import Row
from benchmarks.trust_sets import OWN_TEMPERATURE, SETS, features_of, labeled
from transduce.benchmark.synthetic import UNSEEN, name_of
from transduce.cli.demo import draw_folder
from transduce.encoders.class_names import ClassNames
from transduce.encoders.onnx import load_shapes
from transduce.encoders.prompts import embed_classes
from transduce.labeling.trust.doubt import TO_CHECK, most_wrong
from transduce.simplex.probabilities import softmax

IMAGES, CLASSES, DRAWS = 300, 8, 20


def measure(draws: int = DRAWS) -> Row:
    """The demo with the seeds 0, 1, ...: its accuracy, wrong labels expected and found."""
    encoder = load_shapes()
    texts = embed_classes(encoder, ClassNames.of(name_of(pair) for pair in UNSEEN))
    rows = []
    for seed in range(draws):
        with TemporaryDirectory() as folder:
            drawn = draw_folder(Path(folder), images=IMAGES, classes=CLASSES, seed=seed)
            pixels = np.stack([encoder.preprocessing(Image.open(file)) for file in drawn.files])
        batch = labeled(encoder.embed_images(pixels), drawn.truth, texts)
        fine = batch.doubt < TO_CHECK
        rows.append(
            {
                "wrong": int(batch.wrong.sum()),
                "look_right": int(fine.sum()),
                "expected": round(float(batch.doubt[fine].sum()), 2),
                "found": int(batch.wrong[fine].sum()),
                "most": int(np.ceil(most_wrong(batch.doubt[fine], batch.label[fine]))),
                "to_check_expected": round(float(batch.doubt[~fine].sum()), 2),
                "to_check_found": int(batch.wrong[~fine].sum()),
            }
        )
    return {"draws": rows}


def caution() -> Row:
    """The errors that CLIP expects by its own scale, and those it makes, on whole sets."""
    found = {}
    for name in SETS:
        features = features_of(name)
        split = features.splits["all"]
        scores = OWN_TEMPERATURE * split.embeddings @ features.class_embeddings.T
        wrong = float((scores.argmax(1) != split.labels).mean())
        found[name] = [round(1.0 - float(softmax(scores).max(1).mean()), 4), round(wrong, 4)]
    return {"zero_shot": found}
