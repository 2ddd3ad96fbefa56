"""preprocessor_config.json, as transformers writes it, to our `Preprocessing`."""

from collections.abc import Mapping
from typing import Any, Literal

from transduce.encoders.encoder import Preprocessing
from transduce.errors import InvalidEncoder

INTERPOLATIONS: dict[int, Literal["bilinear", "bicubic"]] = {2: "bilinear", 3: "bicubic"}
# The values transformers takes for what a preprocessor_config.json leaves out.
DEFAULTS: dict[str, dict[str, Any]] = {
    "clip": {"size": 224, "crop_size": 224, "do_center_crop": True,
             "image_mean": Preprocessing().mean, "image_std": Preprocessing().std},
    "siglip": {"size": {"height": 224, "width": 224}, "do_center_crop": False,
               "image_mean": (0.5,) * 3, "image_std": (0.5,) * 3},
    "image": {"do_center_crop": False},  # nothing is supposed: an image tower may be anyone's
}  # fmt: skip


def preprocessing_from_config(
    settings: Mapping[str, Any], family: str, source: str
) -> Preprocessing:
    """Return our value for a preprocessor_config.json of the model in `source`.

    `family` says which values stand for those that the file leaves out: "clip", "siglip", or
    "image", for which sizes, mean and deviation must be in it.
    """
    merged = DEFAULTS[family] | dict(settings)
    missing = [key for key in ("size", "image_mean", "image_std") if key not in merged]
    if missing or (merged["do_center_crop"] and "crop_size" not in merged):
        raise InvalidEncoder(
            f"Expected {', '.join(missing or ['crop_size'])} in the preprocessor_config.json of "
            f"{source}, found none; without it images cannot be prepared as in training."
        )
    shortest, height, width = _sizes(merged["size"])
    crop = _sizes(merged["crop_size"])[1:] if merged["do_center_crop"] else (height, width)
    side = shortest or (height if height == width else None)
    size = crop[0] if crop[0] == crop[1] else None
    interpolation = INTERPOLATIONS.get(merged.get("resample", 3))
    switched_off = [
        step for step in ("do_resize", "do_rescale", "do_normalize") if not merged.get(step, True)
    ]
    if side is None or size is None or size > side or interpolation is None or switched_off:
        raise InvalidEncoder(
            f"Expected {source} to take square images, scaled (bilinear or bicubic), cropped to "
            f"no larger a size and normalized, found size {merged['size']}, crop {crop}, resample "
            f"{merged.get('resample')}, switched off: {switched_off or 'nothing'}; "
            "choose another model."
        )
    return Preprocessing(
        size=size,
        mean=tuple(merged["image_mean"]),
        std=tuple(merged["image_std"]),
        interpolation=interpolation,
        resize="shortest" if shortest else "squash",
        crop="down",
        resize_to=side if side != size else None,
    )


def _sizes(value: Any) -> tuple[int | None, int | None, int | None]:  # noqa: ANN401
    """Return (shortest edge, height, width) of a size in any form that configs use."""
    if isinstance(value, Mapping):
        return value.get("shortest_edge"), value.get("height"), value.get("width")
    return value, value, value
