"""Labels in the formats that other tools read, by name."""

from collections.abc import Callable
from pathlib import Path

from transduce.catalogue import Catalogue
from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.exports.cleanlab import export_cleanlab
from transduce.labeling.exports.fiftyone import export_fiftyone
from transduce.labeling.exports.imagefolder import Link, export_imagefolder
from transduce.labeling.exports.label_studio import export_label_studio
from transduce.labeling.exports.tables import export_csv, export_jsonl, export_parquet

Exporter = Callable[[AnsweredLabels, Path], str]  # returns what was written, in words

EXPORTERS: Catalogue[Exporter] = Catalogue(
    "format to export to",
    {
        "csv": export_csv,
        "jsonl": export_jsonl,
        "parquet": export_parquet,
        "imagefolder": export_imagefolder,
        "fiftyone": export_fiftyone,
        "label-studio": export_label_studio,
        "cleanlab": export_cleanlab,
    },
)
SUFFIXES = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}  # the others are folders

__all__ = ["EXPORTERS", "SUFFIXES", "Link", "export_imagefolder"]
