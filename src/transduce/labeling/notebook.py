"""`transduce.label_folder`: the one command, for a notebook or a script."""

import base64
import html
import io
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transduce.encoders.class_names import ClassNames
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.errors import MissingExtra
from transduce.labeling.files import names_of
from transduce.labeling.inputs import Machine
from transduce.labeling.pipeline import label
from transduce.labeling.run_directory import LABELS_PARQUET, RunDirectory, copy_run
from transduce.labeling.settings import LabelSettings

if TYPE_CHECKING:
    import pandas as pd

SHEET = 24  # images of the contact sheet
SIDE = 96  # pixels


def label_folder(
    source: str | Path,
    classes: Sequence[str],
    *,
    templates: Sequence[str] = (DEFAULT_TEMPLATE,),
    encoder: str = "default",
    method: str = "auto",
    classes_present: int | Literal["auto", "all"] = "auto",
    batch: int | Literal["all"] = "all",
    support: str | Path = "",
    support_from: str | Path = "",
    allow_unknown: bool = False,
    min_score: float = 0.0,
    truth: str | Path = "",
    seed: int = 0,
    offline: bool = False,
    machine: Machine | None = None,
) -> "Labels":
    """Label the images of a folder (glob, list, archive, URL) with one of `classes` each.

    Nothing is left on disk until `Labels.save`; the options are those of `transduce label`.
    """
    names = ClassNames.of(classes)
    settings = LabelSettings(
        source=str(source),
        classes=names.labels,
        prompts=names.prompts,
        templates=tuple(templates),
        encoder=encoder,
        method=method,
        classes_present=classes_present,
        batch=batch,
        support=str(support),
        support_from=str(support_from),
        allow_unknown=allow_unknown,
        min_score=min_score,
        truth=str(truth),
        seed=seed,
        offline=offline,
    )
    workspace = Path(tempfile.mkdtemp(prefix="transduce-"))
    try:
        labels = Labels(label(settings, workspace, machine=machine))
    except BaseException:
        shutil.rmtree(workspace, ignore_errors=True)
        raise
    # The features live as long as the labels.
    weakref.finalize(labels, shutil.rmtree, workspace, ignore_errors=True)
    return labels


@dataclass(frozen=True)
class Labels:
    """The labels of a folder. In a notebook, the last line of a cell shows them."""

    run: RunDirectory

    def __len__(self) -> int:
        return len(self.run.labels)

    @property
    def names(self) -> list[str]:
        """The label of each image, in the order of `run.labels.file_name`."""
        return names_of(self.run.labels.label, self.run.classes)

    def to_pandas(self) -> "pd.DataFrame":
        """A row per image, with every column of labels.parquet."""
        import pyarrow.parquet as pq

        try:
            import pandas  # noqa: F401 - pyarrow needs it
        except ImportError:
            raise MissingExtra("to_pandas", "notebook") from None
        return pq.read_table(self.run.folder / LABELS_PARQUET).to_pandas()

    def save(self, out: str | Path) -> Path:
        """Copy the run directory, with its report, to the next free place in `out`."""
        from transduce.labeling.report.page import write_report

        folder = copy_run(self.run, Path(out))
        write_report(RunDirectory.load(folder))
        return folder

    def show(self) -> None:
        """The summary and a contact sheet, least sure first, in a notebook; else the summary."""
        try:
            from IPython import get_ipython
            from IPython.display import HTML, display
        except ImportError:
            print(self)
            return
        if get_ipython() is None:
            print(self)
        else:
            display(HTML(self._repr_html_()))

    def __str__(self) -> str:
        summary = self.run.summary
        counts = ", ".join(
            f"{entry.label} {entry.joint:,}" for entry in summary.classes if entry.joint
        )
        lines = [
            f"{summary.images:,} images by {summary.method}: {counts}",
            f"{summary.changed:,} labels are not zero-shot's, {summary.needs_review:,} to review",
            *(f"Warning: {warning}" for warning in summary.warnings),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())
        table = self.run.labels
        order = sorted(range(len(table)), key=lambda row: float(table.margin[row]))[:SHEET]
        figures = "".join(self._figure(row) for row in order)
        return f'<div>{lines}<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div></div>'

    def _figure(self, row: int) -> str:
        table = self.run.labels
        picture = _thumbnail(table.image_path[row])
        title = html.escape(table.file_name[row], quote=True)
        words = html.escape(f"{self.names[row]} {table.score[row]:.0%}")
        image = f'<img alt="" title="{title}" src="{picture}">' if picture else title
        caption = f"<figcaption>{words}</figcaption>"
        return f'<figure style="margin:0;width:{SIDE}px">{image}{caption}</figure>'


def _thumbnail(path: str) -> str:
    """A data URL, or "" where there is no file that can be opened."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            small: Any = ImageOps.exif_transpose(opened).convert("RGB")
            small.thumbnail((SIDE, SIDE))
    except (OSError, ValueError, Image.DecompressionBombError):
        return ""
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
