"""Models of the hub that have a short name: one repository, one revision, checksums where known.

A name here means the same weights for ever. The checksums are those the hub keeps for its large
files; of the others the revision is the only pin, and what was downloaded is recorded in the run.
"""

from transduce.encoders.hub import HubModel

CLIP_REPOSITORY = "Xenova/clip-vit-base-patch32"
CLIP_REVISION = "d15189d7028b43f1d3e65039190477f6af591c2a"
# The tokenizer and the sizes of images, the same for both precisions.
CLIP_SHARED = {
    "config.json": "",
    "preprocessor_config.json": "6f638fb9401a6d6296feff533ee7efe657b787c49f954f82f5906b36ef2a1b1f",
    "tokenizer.json": "f7f3b7af117d467b58374797691a6438d3e6b9e9cef800dfd5dced7f697a90cd",
}
CLIP = HubModel(
    name="clip",
    repository=CLIP_REPOSITORY,
    revision=CLIP_REVISION,
    files={"onnx/vision_model.onnx": "", "onnx/text_model.onnx": "", **CLIP_SHARED},
    license="MIT",
)
CLIP_Q8 = HubModel(
    name="clip-q8",
    repository=CLIP_REPOSITORY,
    revision=CLIP_REVISION,
    files={
        "onnx/vision_model_quantized.onnx": (
            "583fd1110a514667812fee7d684952aaf82a99b959760c8d7dca7e0ab9839299"
        ),
        "onnx/text_model_quantized.onnx": (
            "73baab855d406190da9faa498cfedf65f15cf309f4cc7385b7b032e6d08e5c3a"
        ),
        **CLIP_SHARED,
    },
    license="MIT",
)

DINOV2_REPOSITORY = "onnx-community/dinov2-small"
DINOV2_REVISION = "8b1f705a3a7f6f062f6bdd21986c1583d3ef105d"
DINOV2 = HubModel(
    name="dinov2",
    repository=DINOV2_REPOSITORY,
    revision=DINOV2_REVISION,
    files={"onnx/model.onnx": "", "preprocessor_config.json": ""},
    license="Apache-2.0",
)
DINOV2_Q8 = HubModel(
    name="dinov2-q8",
    repository=DINOV2_REPOSITORY,
    revision=DINOV2_REVISION,
    files={
        "onnx/model_quantized.onnx": (
            "c179f8f7f592449c4c1bca4cd124a7538021428c5ffb89afde9503935b197efb"
        ),
        "preprocessor_config.json": "",
    },
    license="Apache-2.0",
)
