"""CoOp's own split files, where they are at hand: the cards' counts are theirs."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from transduce.benchmark.datasets import CARDS
from transduce.benchmark.datasets.layouts import read_split_file
from transduce.benchmark.datasets.verify import check_index
from transduce.benchmark.episodes import FewShotProtocol, ZeroShotProtocol
from transduce.errors import InvalidDataset

NAMES = ("caltech101", "dtd", "eurosat", "flowers102", "oxford_pets", "stanford_cars", "ucf101")


@pytest.fixture(scope="module")
def folder():
    reference = os.environ.get("TRANSDUCE_REFERENCE")
    if not reference:
        pytest.skip("TRANSDUCE_REFERENCE is not set: no split files here")
    return Path(reference) / "splits"


@pytest.mark.parametrize("name", NAMES)
def test_the_card_counts_as_the_split_does(folder, name):
    card = CARDS[name]
    check_index(card, folder / card.index)
    contents = read_split_file(folder / card.index)
    assert len(contents.classes) == card.classes
    images = [sample.path for split in contents.samples.values() for sample in split]
    assert len(images) == len(set(images)) == sum(card.counts.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_protocols_fit_the_split(folder, name):
    card = CARDS[name]
    contents = read_split_file(folder / card.index)

    def counts(split):
        found = Counter(sample.label for sample in contents.samples[split])
        return np.array([found[label] for label in range(card.classes)])

    for protocol in (ZeroShotProtocol(), FewShotProtocol()):
        protocol.check(counts("test"), name)
    assert ZeroShotProtocol().numbers_present(counts("test")).tolist() == list(range(3, 11))
    assert counts("train").min() >= 16  # the most shots of the paper


def test_another_datasets_split_is_refused(folder):
    with pytest.raises(InvalidDataset, match=r"Expected 2,820 train.* found 4,128 train"):
        check_index(CARDS["dtd"], folder / CARDS["caltech101"].index)


def test_what_the_card_of_caltech_says_is_left_out(folder):
    contents = read_split_file(folder / CARDS["caltech101"].index)
    folders = {s.path.split("/")[0] for split in contents.samples.values() for s in split}
    assert not folders & {"BACKGROUND_Google", "Faces_easy"}
    assert "Faces" in folders
