import re

import pytest

from tests.benchmark.datasets.miniatures import CARD
from transduce.benchmark.datasets import CARDS
from transduce.benchmark.datasets.card import parse_card
from transduce.benchmark.datasets.layouts import LAYOUTS
from transduce.errors import InvalidDataset, UnknownName

TITLES = {
    "ImageNet", "Caltech101", "OxfordPets", "StanfordCars", "Flowers102", "Food101",
    "FGVCAircraft", "SUN397", "DTD", "EuroSAT", "UCF101",
}  # fmt: skip
# The one template that the paper uses for each of its datasets (section 5.1), after CoOp's.
TEMPLATES = {
    "caltech101": "a photo of a {}.",
    "dtd": "{} texture.",
    "eurosat": "a centered satellite photo of {}.",
    "fgvc_aircraft": "a photo of a {}, a type of aircraft.",
    "flowers102": "a photo of a {}, a type of flower.",
    "food101": "a photo of {}, a type of food.",
    "imagenet": "a photo of a {}.",
    "oxford_pets": "a photo of a {}, a type of pet.",
    "stanford_cars": "a photo of a {}.",
    "sun397": "a photo of a {}.",
    "ucf101": "a photo of a person doing {}.",
}
each_card = pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)


def test_the_papers_datasets_have_cards():
    assert {card.title for card in CARDS.values()} == TITLES
    assert {name: card.template for name, card in CARDS.items()} == TEMPLATES


@each_card
def test_a_card_is_complete(card):
    assert card.layout in LAYOUTS
    assert card.index in card.needs
    # Whatever is needed, some file of the card becomes it.
    places = {download.target for download in card.downloads}
    assert places == {"."} or places == set(card.needs)


@each_card
def test_every_file_can_be_had(card):
    for download in card.downloads:
        assert download.url or download.page
        assert not download.md5 or re.fullmatch("[0-9a-f]{32}", download.md5)
        # What comes over an open line must be proven by its checksum.
        assert not download.url.startswith("http:") or download.md5
        assert not {download.url, download.page} & set(download.dead)


def test_an_unknown_dataset_is_told_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'oxford_pets'"):
        CARDS["oxford-pets"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text + "x = [", "Expected TOML in the card tiny.toml"),
        (lambda text: text + 'color = "red"', "Expected only .* found 'color'"),
        (lambda text: text.replace("classes = 3", ""), "missing required field `classes`"),
        (lambda text: text.replace("test = 6", "tests = 6"), "counts of test.*found train, val, t"),
        (lambda text: text.replace("{}", "pet"), "in the template"),
        (lambda text: text + '[[downloads]]\nfile = "a.zip"', "download of .* field `target`"),
    ],
)
def test_a_bad_card_is_refused(change, told):
    parse_card("tiny", CARD)
    with pytest.raises(InvalidDataset, match=told):
        parse_card("tiny", change(CARD))
