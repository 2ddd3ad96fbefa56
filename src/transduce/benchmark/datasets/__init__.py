"""Datasets: what the field evaluates on, as cards, and folders of one's own."""

from transduce.benchmark.datasets.card import CARDS, Card, Download
from transduce.benchmark.datasets.dataset import Dataset, Sample, load_dataset

__all__ = ["CARDS", "Card", "Dataset", "Download", "Sample", "load_dataset"]
