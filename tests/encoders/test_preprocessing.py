import numpy as np
import pytest
from PIL import Image

from transduce.encoders.open_clip import preprocessing_from_open_clip as of_open_clip
from transduce.encoders.preprocessor_config import preprocessing_from_config as of_transformers

# Odd in every way: portrait, panorama, smaller than the tower, off by one, a single pixel.
SIZES = [
    (640, 427),
    (427, 640),
    (225, 224),
    (31, 97),
    (224, 224),
    (1, 1),
    (500, 333),
    (226, 231),
    (1000, 37),
    (229, 224),
]
TARGET = 224
ODD_TARGET = 33  # leaves odd margins, where torchvision and transformers crop differently


def picture(size):
    pixels = np.random.default_rng(sum(size)).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("target", [TARGET, ODD_TARGET])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("resize", ["shortest", "squash"])
def test_equals_open_clips_transform_bit_for_bit(open_clip, target, interpolation, resize):
    settings = {
        "size": target,
        "mean": (0.48145466, 0.4578275, 0.40821073),
        "std": (0.26862954, 0.26130258, 0.27577711),
        "interpolation": interpolation,
        "resize_mode": resize,
    }
    theirs = open_clip.image_transform(
        target, False, settings["mean"], settings["std"], resize, interpolation
    )
    ours = of_open_clip(settings)
    for size in SIZES:
        expected = theirs(picture(size)).numpy()
        found = ours(picture(size))
        assert found.dtype == np.float32
        assert np.array_equal(found, expected), size


@pytest.mark.parametrize("target", [TARGET, ODD_TARGET])
@pytest.mark.parametrize("resample", [2, 3])
@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_equals_transformers_processors_bit_for_bit(family, resample, target):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    square = {"height": target, "width": target}
    theirs = (
        CLIPImageProcessorPil(size={"shortest_edge": target}, crop_size=square, resample=resample)
        if family == "clip"
        else SiglipImageProcessorPil(size=square, resample=resample)
    )
    ours = of_transformers(theirs.to_dict(), family, "a model")
    for size in SIZES:
        expected = theirs(picture(size))["pixel_values"][0]
        assert np.array_equal(ours(picture(size)), expected), size


@pytest.mark.parametrize(("side", "crop"), [(256, 224), (41, 33)])
def test_a_margin_is_cut_off_as_transformers_does_for_dinov2(side, crop):
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil

    theirs = BitImageProcessorPil(
        size={"shortest_edge": side},
        crop_size={"height": crop, "width": crop},
        resample=3,
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )
    ours = of_transformers(theirs.to_dict(), "image", "a model")
    assert (ours.size, ours.resize_to) == (crop, side)
    for size in SIZES:
        expected = theirs(picture(size))["pixel_values"][0]
        assert np.array_equal(ours(picture(size)), expected), size


def test_an_image_tower_of_unknown_origin_must_say_its_sizes_and_colors():
    from transduce.errors import InvalidEncoder

    with pytest.raises(InvalidEncoder, match="Expected image_mean, image_std in"):
        of_transformers({"size": {"shortest_edge": 256}}, "image", "a model")
    whole = {"size": 256, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_center_crop": True}
    with pytest.raises(InvalidEncoder, match="Expected crop_size in"):
        of_transformers(whole, "image", "a model")


def test_identities_of_stores_made_before_there_was_a_margin_stay():
    from transduce.encoders.encoder import Preprocessing

    assert "resize_to" not in Preprocessing().describe()
    assert '"resize_to": 256' in Preprocessing(resize_to=256).describe()


def test_the_two_libraries_crop_odd_margins_apart(open_clip):
    """Why `crop` exists: 3 pixels too many leave 2 on one side for torchvision, 1 for the other."""
    shared = {"mean": (0.5,) * 3, "std": (0.5,) * 3}
    nearest = of_open_clip(
        {"size": 32, "interpolation": "bicubic", "resize_mode": "shortest", **shared}
    )
    down = of_transformers(
        {
            "size": 32,
            "crop_size": 32,
            "resample": 3,
            "image_mean": shared["mean"],
            "image_std": shared["std"],
        },
        "clip",
        "a model",
    )
    image = picture((35, 32))
    assert np.array_equal(nearest(image)[:, :, :-1], down(image)[:, :, 1:])


def test_every_byte_is_scaled_as_transformers_does():
    every_byte = np.arange(256, dtype=np.uint8)
    theirs = (every_byte.astype(np.float64) * (1 / 255)).astype(np.float32)
    assert np.array_equal(every_byte.astype(np.float32) / np.float32(255.0), theirs)


def test_old_and_sparse_configs_are_read_as_transformers_reads_them():
    old = of_transformers({"size": 224, "crop_size": 224, "resample": 3}, "clip", "a model")
    assert (old.size, old.resize, old.interpolation) == (224, "shortest", "bicubic")
    assert old.mean == (0.48145466, 0.4578275, 0.40821073)
    bare = of_transformers({}, "siglip", "a model")
    assert (bare.size, bare.resize, bare.mean) == (224, "squash", (0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"shortest_edge": 224}, "crop_size": 256},
        {"size": {"height": 224, "width": 196}},
        {"resample": 1},
        {"do_normalize": False},
        {"size": {"longest_edge": 224}},
    ],
)
def test_what_we_cannot_do_exactly_is_refused(settings):
    from transduce.errors import InvalidEncoder

    with pytest.raises(InvalidEncoder, match="square images"):
        of_transformers(settings, "clip", "a model")


@pytest.mark.parametrize("change", [{"size": (224, 196)}, {"resize_mode": "longest"}])
def test_open_clip_settings_we_cannot_do_are_refused(change):
    from transduce.errors import InvalidEncoder

    settings = {
        "size": 224,
        "mean": (0.5,) * 3,
        "std": (0.5,) * 3,
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    with pytest.raises(InvalidEncoder, match="square images"):
        of_open_clip(settings | change)
