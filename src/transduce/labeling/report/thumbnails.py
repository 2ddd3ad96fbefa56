"""The pictures of a run, made small: found by their row, never by a path from outside."""

import io
from functools import cached_property

from transduce.errors import TransduceError
from transduce.features.layout import MANIFEST
from transduce.images.decoding import Unreadable, shrunk
from transduce.images.file_types import is_container
from transduce.images.manifest import Manifest
from transduce.images.reading import read_bytes
from transduce.labeling.run_directory import RunDirectory


class RunPictures:
    """Reads the picture of a row of the labels from wherever the run found it."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def jpeg(self, row: int, side: int, quality: int) -> bytes:
        """The picture, upright and RGB, at most `side` pixels wide and high.

        Raises `Unreadable` when it is gone, changed, or never was: features may come alone.
        """
        written = io.BytesIO()
        shrunk(self._bytes(row), side).save(written, "JPEG", quality=quality, optimize=True)
        return written.getvalue()

    def _bytes(self, row: int) -> bytes:
        path = self._run.labels.image_path[row]
        if not path:
            raise Unreadable("no picture", "only its features are known")
        if not is_container(path):
            return read_bytes(path, None, -1)
        place = self._members.get((self._run.labels.file_name[row], path))
        if place is None:
            raise Unreadable("missing", "the feature store does not say where in the archive")
        return read_bytes(path, *place)

    @cached_property
    def _members(self) -> dict[tuple[str, str], tuple[int | None, int]]:
        """Where in its archive each picture starts, and its size."""
        try:
            manifest = Manifest(self._run.store().folder / MANIFEST)
        except (OSError, TransduceError):  # no store any more, or one that was imported
            return {}
        return {(entry.key, entry.path): (entry.offset, entry.size) for entry in manifest}
