"""Labels in the formats that other tools read, by name."""

from collections.abc import Callable
from pathlib import Path

from transduce.catalogue import Catalogue
from transduce.labeling.exports.cleanlab import write_cleanlab
from transduce.labeling.exports.fiftyone import write_fiftyone
from transduce.labeling.exports.imagefolder import Link, write_imagefolder
from transduce.labeling.exports.label_studio import write_label_studio
from transduce.labeling.exports.tables import write_csv, write_jsonl, write_parquet
from transduce.labeling.run_directory import RunDirectory

Exporter = Callable[[RunDirectory, Path], str]  # returns what was written, in words

EXPORTERS: Catalogue[Exporter] = Catalogue(
    "format to export to",
    {
        "csv": write_csv,
        "jsonl": write_jsonl,
        "parquet": write_parquet,
        "imagefolder": write_imagefolder,
        "fiftyone": write_fiftyone,
        "label-studio": write_label_studio,
        "cleanlab": write_cleanlab,
    },
)
SUFFIXES = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}  # the others are folders

__all__ = ["EXPORTERS", "SUFFIXES", "Link", "write_imagefolder"]
