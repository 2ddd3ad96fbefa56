"""Features of images: embedded once, kept with the identity of their encoder."""

from transduce.features.embedding import embed
from transduce.features.importing import import_features, open_features
from transduce.features.store import FeatureStore

__all__ = ["FeatureStore", "embed", "import_features", "open_features"]
