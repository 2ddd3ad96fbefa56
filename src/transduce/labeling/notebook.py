"""`transduce.label`: label images from a notebook or a script."""

import contextlib
import html
import math
import shutil
import tempfile
import weakref
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from transduce.encoders.class_names import ClassNames, class_names_from
from transduce.encoders.encoder import Encoder, ImageEncoder
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.errors import InvalidSetting, MissingExtra, counted
from transduce.features.store import FeatureStore
from transduce.labeling.answers import answered_labels
from transduce.labeling.continuing import options_like
from transduce.labeling.files import table_columns
from transduce.labeling.inputs import Machine
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.run_directory import RunDirectory, copy_run
from transduce.labeling.settings import FROM_STORE, LabelSettings

if TYPE_CHECKING:
    import pandas as pd

SHEET = 24  # images of the contact sheet
SIDE = 96  # pixels
QUALITY = 80  # of JPEG


def label(
    source: str | Path | FeatureStore,
    classes: str | Sequence[str] = (),
    *,
    like: str | Path = "",
    encoder: str | Encoder | None = None,
    templates: Sequence[str] = (DEFAULT_TEMPLATE,),
    images: str | Path = "",
    view: str | Path | FeatureStore | ImageEncoder = "",
    method: str = "auto",
    classes_present: int | Literal["auto", "all"] = "auto",
    iterations: int = 0,
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
    """Give each image of a source one of `classes`, solving for all of them jointly.

    The files of the run are in a temporary folder, removed when neither the labels nor their `run`
    are used any more; `Labels.save` keeps them. The options are those of `transduce label`.

    Parameters
    ----------
    source : str, Path or FeatureStore
        A folder, glob, list (.txt, .csv, .parquet), archive (.tar) or URL of images, or images
        that were embedded before.
    classes : str or sequence of str
        The class names; a text has commas between them ("cat,dog,fox") or is the path of a file
        of classes. At least two; none with `like`.
    like : str or Path
        The folder of an earlier run, as `Labels.save` wrote it. Its classes and its encoder are
        used again, and the new images are labeled with what the run learned of its own.
    encoder : str or Encoder, optional
        An id such as "open_clip:ViT-B-32/openai", or an encoder that is already loaded. By default
        `clip`, and for a feature store the encoder that made it.
    templates : sequence of str, default ("a photo of a {}.",)
        Sentences with {} for the class name; their embeddings are averaged.
    images : str or Path
        Where the images of a feature store are, to be shown and reviewed.
    view : str, Path, FeatureStore or ImageEncoder
        Another encoder, such as "dinov2", or the features of the same images by it. Images are
        then compared with each other by this encoder, and with class names by `encoder`.
    method : str, default "auto"
        "auto", which is `Anchored` (zero-shot for a single image), or a name of
        `transduce.METHODS`.
    classes_present : int, "auto" or "all", default "auto"
        How many of the classes occur among the images, for the paper's methods; "auto" estimates
        the number.
    iterations : int, default 0
        The `max_iter` of a published method; 0 for the published number.
    batch : int or "all", default "all"
        How many images are labeled jointly; a number where memory is short.
    support : str or Path
        A folder with a sub-folder of labeled images for each class.
    support_from : str or Path
        A CSV (file_name, label) of images of `source` whose label is known.
    allow_unknown : bool, default False
        Label images far from every class "unknown".
    min_score : float, default 0.0
        Label images whose score, from 0 to 1, is lower "unknown".
    truth : str or Path
        A CSV (file_name, label) to compare the labels with, or "folders" where the sub-folders
        have the names of the classes.
    seed : int, default 0
        Decides which images share a batch, if there is more than one batch.
    offline : bool, default False
        Use no network: weights must be on this machine.
    machine : Machine, optional
        Device, batch size and processes; they change the speed, never the labels.

    Returns
    -------
    Labels
        The labels, in the order of the file names.

    Raises
    ------
    TransduceError
        Where the images, the classes or a setting cannot be used; the message says what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image, ImageDraw
    >>> import transduce
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, color in [("a.png", "red"), ("b.png", "blue"), ("c.png", "red")]:
    ...     image = Image.new("RGB", (64, 64), "white")
    ...     ImageDraw.Draw(image).ellipse((12, 12, 52, 52), fill=color)
    ...     image.save(folder / name)
    >>> labels = transduce.label(folder, "red circle,blue circle", encoder="shapes")
    >>> labels
    <Labels of 3 images: red circle 2, blue circle 1; 0 to check>
    >>> dict(labels)
    {'a.png': 'red circle', 'b.png': 'blue circle', 'c.png': 'red circle'}
    """
    options = dict(locals())  # each parameter that is a setting has the setting's name
    if like and not classes:
        names = RunDirectory.load(like).classes
    else:
        names = class_names_from(classes) if isinstance(classes, str) else ClassNames.of(classes)
    if isinstance(source, FeatureStore):
        options |= {"source": "", "features": str(source.folder.absolute())}
        encoder = encoder or FROM_STORE
    view_encoder = None if isinstance(view, str | Path | FeatureStore) else view
    if isinstance(view, FeatureStore):
        options["view"] = str(view.folder.absolute())
    elif view_encoder is not None:
        options["view"] = view_encoder.identity.encoder
    loaded = None if encoder is None or isinstance(encoder, str) else encoder
    options["encoder"] = loaded.identity.encoder if loaded else encoder
    if like:
        if tuple(templates) == (DEFAULT_TEMPLATE,):  # not given
            options["templates"] = None
        options = options_like(Path(like), options)
    settings = LabelSettings.of(names, options)
    workspace = Path(tempfile.mkdtemp(prefix="transduce-"))
    try:
        run = run_labeling(
            settings, workspace, encoder=loaded, view_encoder=view_encoder, machine=machine
        )
    except BaseException:
        shutil.rmtree(workspace, ignore_errors=True)
        raise
    # The files live as long as the run, which may be all that is kept of the labels.
    weakref.finalize(run, shutil.rmtree, workspace, ignore_errors=True)
    # A store that was given may be a temporary one, too: it lives as long as the labels.
    return Labels(
        run,
        source if isinstance(source, FeatureStore) else None,
        view if isinstance(view, FeatureStore) else None,
    )


@dataclass(frozen=True, repr=False, eq=False)
class Labels:
    """The labels of a source of images. In a notebook, the last line of a cell shows them.

    Iterating gives (file name, label) pairs, so that `dict(labels)` maps one to the other.

    Parameters
    ----------
    run : RunDirectory
        The run with all its columns (`run.labels`), figures (`run.summary`), `probabilities()` and
        embeddings (`store()`).
    features : FeatureStore, optional
        The store that was labeled, if the source was one.
    view : FeatureStore, optional
        The store of the second view, if it was given as one.

    Examples
    --------
    >>> import transduce
    >>> labels = transduce.label("photos/", "cat,dog,fox")  # doctest: +SKIP
    >>> labels.to_pandas().query("needs_review")  # doctest: +SKIP
    >>> labels.export("csv", "labels.csv")  # doctest: +SKIP
    >>> labels.save("out")  # doctest: +SKIP
    """

    run: RunDirectory
    features: FeatureStore | None = None
    view: FeatureStore | None = None

    def __len__(self) -> int:
        return len(self.run.labels)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.run.labels.file_name, self.names, strict=True)

    @property
    def names(self) -> list[str]:
        """The label of each image, in the order of `run.labels.file_name`, with all answers."""
        return answered_labels(self.run).names

    def to_pandas(self, *, probabilities: bool = True) -> "pd.DataFrame":
        """Return a row per image, with the columns of labels.parquet and all answers.

        Parameters
        ----------
        probabilities : bool
            Add a column `p(CLASS)` with the probability of each class.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtra("to_pandas", "notebook") from None
        labels = answered_labels(self.run)
        columns = table_columns(labels.table, labels.classes)
        frame = pandas.DataFrame({name: column.to_pandas() for name, column in columns.items()})
        for name, values in labels.extra_columns().items():
            frame[name] = values if isinstance(values, np.ndarray) else list(values)
        if not probabilities:
            return frame
        rows = np.concatenate([block for _, block in labels.probability_blocks()])
        each = pandas.DataFrame(rows, columns=[f"p({name})" for name in labels.classes.labels])
        return pandas.concat([frame, each], axis=1)

    def export(self, to: str, out: str | Path, *, review: bool = True) -> Path:
        """Write the labels for another tool; returns where.

        Parameters
        ----------
        to : str
            csv, jsonl, parquet, imagefolder, fiftyone, label-studio or cleanlab.
        out : str or Path
            A file (csv, jsonl, parquet) or a folder that is not there yet.
        review : bool
            False leaves out the answers of reviews and audits.

        Returns
        -------
        Path
            `out`.
        """
        from transduce.labeling.exports import EXPORTERS

        target = Path(out)
        exporter = EXPORTERS[to]
        if target.exists() and (target.is_file() or any(target.iterdir())):
            raise InvalidSetting(f"Expected nothing at {target} yet, found something.")
        target.parent.mkdir(parents=True, exist_ok=True)
        exporter(answered_labels(self.run, review=review), target)
        return target

    def review(self, *, everything: bool = False, port: int = 0, browser: bool = True) -> None:
        """Serve the review page to this machine until it is interrupted; needs transduce[app].

        Answers count at once: `names`, `to_pandas` and `export` have them.

        Parameters
        ----------
        everything : bool
            Ask about every image, not only those to check.
        port : int
            0 is any free one.
        browser : bool
            Open the page in the browser.
        """
        from transduce.labeling.review.app import serve_review
        from transduce.labeling.review.lock import only_review
        from transduce.labeling.review.session import ReviewSession

        def announce(address: str) -> None:
            print(f"Open {address}\nInterrupt (Ctrl-C, or stop the cell) when you are done.")
            if browser:
                webbrowser.open(address)

        with contextlib.ExitStack() as locks:
            locks.enter_context(only_review(self.run.folder))
            session = ReviewSession(self.run, everything=everything, locks=locks)
            with contextlib.suppress(KeyboardInterrupt):
                serve_review(session, port, announce)

    def save(self, out: str | Path) -> Path:
        """Copy the run directory with its report into `out`; returns its folder."""
        from transduce.labeling.report.page import write_report

        folder = copy_run(self.run, Path(out))
        write_report(RunDirectory.load(folder))
        return folder

    def show(self) -> None:
        """Show the summary and, in a notebook, the images with the smallest margins."""
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

    def _counts(self) -> str:
        counted = [entry for entry in self.run.summary.classes if entry.joint]
        return ", ".join(f"{entry.label} {entry.joint:,}" for entry in counted)

    def __repr__(self) -> str:
        review = self.run.summary.needs_review
        return f"<Labels of {counted(len(self), 'image')}: {self._counts()}; {review:,} to check>"

    def __str__(self) -> str:
        summary = self.run.summary
        lines = [
            f"{counted(summary.images, 'image')}: {self._counts()}",
            f"{summary.needs_review:,} to check, of the others about "
            f"{summary.expected_wrong:,.0f} are expected to be wrong, perhaps up to "
            f"{math.ceil(summary.most_wrong):,}",
            *(f"Warning: {warning}" for warning in summary.warnings),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())
        images, names, margin = RunImages(self.run), self.names, self.run.labels.margin
        rows = sorted(range(len(self)), key=lambda row: float(margin[row]))[:SHEET]
        figures = "".join(self._figure(row, names[row], images) for row in rows)
        return f'<div>{lines}<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div></div>'

    def _figure(self, row: int, name: str, images: RunImages) -> str:
        table = self.run.labels
        source = images.data_url(row, SIDE, QUALITY)
        title = html.escape(table.file_name[row], quote=True)
        caption = html.escape(f"{name} {table.score[row]:.0%}")
        image = f'<img alt="" title="{title}" src="{source}">' if source else title
        return (
            f'<figure style="margin:0;width:{SIDE}px">{image}'
            f"<figcaption>{caption}</figcaption></figure>"
        )
