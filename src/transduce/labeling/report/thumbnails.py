"""Small images of a run, found by their row and never by a path from a request."""

import base64
import io
from functools import cached_property
from pathlib import Path

from transduce.errors import TransduceError
from transduce.features.layout import MANIFEST
from transduce.images.decoding import read_bytes, shrunk
from transduce.images.entries import Unreadable, is_container
from transduce.images.manifest import Manifest
from transduce.labeling.run_directory import RunDirectory


class RunImages:
    """Reads the image of a row of the labels from the file or archive that it was embedded from."""

    def __init__(self, run: RunDirectory, folder: Path | None = None) -> None:
        self._run = run
        self._folder = folder  # where the images are, of a run that has only their features

    def jpeg(self, row: int, side: int, quality: int) -> bytes:
        """Return the image, upright and RGB, at most `side` pixels wide and high.

        Raises `Unreadable` when it is gone or changed, or when the run has only its features.
        """
        written = io.BytesIO()
        shrunk(self._bytes(row), side).save(written, "JPEG", quality=quality, optimize=True)
        return written.getvalue()

    def data_url(self, row: int, side: int, quality: int) -> str:
        """Return the image as a `data:` URL, or "" where it cannot be read any more."""
        try:
            data = self.jpeg(row, side, quality)
        except Unreadable:
            return ""
        return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"

    def _bytes(self, row: int) -> bytes:
        path = self._run.labels.image_path[row]
        if self._folder is not None:
            return read_bytes(str(self._in_folder(row)), None, -1)
        if not path:
            raise Unreadable("no image", "only its features are known")
        if not is_container(path):
            return read_bytes(path, None, -1)
        member = self._members.get((self._run.labels.file_name[row], path))
        if member is None:
            raise Unreadable("missing", "the feature store does not say where in the archive")
        return read_bytes(path, *member)

    def _in_folder(self, row: int) -> Path:
        assert self._folder is not None
        path = self._folder / self._run.labels.file_name[row]
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise Unreadable("missing", f"its name leads out of {self._folder}")
        return path

    @cached_property
    def _members(self) -> dict[tuple[str, str], tuple[int | None, int]]:
        """The offset and size of each image in its archive, by (file name, path of the archive)."""
        try:
            manifest = Manifest(self._run.store().folder / MANIFEST)
        except (OSError, TransduceError):  # no store any more, or one that was imported
            return {}
        return {(entry.key, entry.path): (entry.offset, entry.size) for entry in manifest}
