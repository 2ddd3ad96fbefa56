"""What the page of a run shows: plain values for the template, and how they are made of a run."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from transduce.features.layout import Skip
from transduce.images.entries import is_container
from transduce.labeling.report import plots, selection
from transduce.labeling.report.map import ImageMap, image_map
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names
from transduce.labeling.summary import ClassSummary, Summary
from transduce.labeling.trust.certificate import CERTIFICATE, Certificate, read_certificate
from transduce.labeling.trust.class_sets import SETS, ClassSets, read_sets

THUMBNAIL_SIDE = 128  # pixels; shown at 112 and smaller
THUMBNAIL_QUALITY = 70
CANDIDATES = 3
MOST_FLOWS = 12
MOST_CONFUSABLE = 12
LEAST_SHARE = 0.005  # of probability; below, two classes are not confused
MOST_SKIPPED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCard:
    """One image of the page."""

    row: int
    file_name: str
    href: str  # file:// of the whole image; "" if it is not a file on this machine
    thumbnail: str  # data: URI; "" if it cannot be read any more
    label: str
    score: float
    margin: float
    distance: float
    zero_shot_label: str
    zero_shot_score: float
    changed: bool
    reasons: tuple[str, ...]
    duplicate_of: str
    candidates: tuple[tuple[str, float], ...]
    truth: str  # "" if it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSheet:
    """Images of one class, the surest and the least sure of it."""

    label: str
    images: int
    typical: tuple[ImageCard, ...]
    atypical: tuple[ImageCard, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """Images that went from one class to another."""

    before: str
    after: str
    images: int


@dataclass(frozen=True, slots=True)
class Confusable:
    """Two classes that share probability: how much of an image of one goes to the other."""

    first: str
    second: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQueue:
    """The images to look at, as many as the page carries."""

    cards: tuple[ImageCard, ...]
    images: int  # all that need a look
    of_reason: dict[str, int]  # counted over all of them

    @property
    def left_out(self) -> int:
        """How many images are not on the page."""
        return self.images - len(self.cards)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsSummary:
    """The sets of classes of a run, counted."""

    coverage: float
    method: str
    mean_size: float
    one: int  # images whose set is one class
    several: int
    largest: int

    @classmethod
    def of(cls, sets: ClassSets) -> "SetsSummary":
        """Return the figures of the sets."""
        sizes = sets.sizes
        return cls(
            coverage=sets.coverage,
            method=sets.method.upper(),
            mean_size=float(sizes.mean()),
            one=int((sizes == 1).sum()),
            several=int((sizes > 1).sum()),
            largest=int(sizes.max()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """All that the page shows."""

    name: str  # of the run
    source: str
    can_be_seen: bool  # the images are known, not their features alone
    summary: Summary
    class_count: int
    classes: tuple[ClassSummary, ...]  # those that any image got, the largest first
    empty_classes: tuple[str, ...]
    flows: tuple[Flow, ...]
    queue: ReviewQueue
    confidence: Markup
    convergence: Markup
    sheets: tuple[ClassSheet, ...]
    sheets_left_out: int
    confusable: tuple[Confusable, ...]
    skipped: tuple[Skip, ...]
    skipped_left_out: int
    facts: dict[str, str]
    review_command: str
    certify_command: str
    map: ImageMap | None = None
    certificate: Certificate | None = None
    sets: SetsSummary | None = None
    risk: Markup = field(default_factory=Markup)  # the risk-coverage curve of the certificate
    reliability: Markup = field(default_factory=Markup)
    confusion: Markup = field(default_factory=Markup)
    mistakes: tuple[Flow, ...] = ()


def report_content(run: RunDirectory) -> ReportContent:
    """Return what the page of `run` shows."""
    labels, summary = run.labels, run.summary
    queues = selection.queues(labels)
    queued = selection.fair_share(list(queues.values()), selection.MOST_QUEUED)
    sheets, sheets_left_out = selection.sheet_rows(labels, len(run.classes))
    on_sheets = [row for parts in sheets.values() for part in parts for row in part]
    album = _Album(run, {*queued, *on_sheets})
    skipped = run.skipped()
    certificate = read_certificate(run) if run.has(CERTIFICATE) else None
    sets = read_sets(run) if run.has(SETS) else None
    classes, empty = _classes(summary.classes)
    evaluation = summary.evaluation
    name = run.folder.name.lstrip(".")  # the hidden name is of a run not yet whole
    return ReportContent(
        name=name,
        source=run.settings.source or run.settings.features,
        can_be_seen=run.can_be_seen,
        summary=summary,
        class_count=len(run.classes),
        classes=classes,
        empty_classes=empty,
        flows=_flows(run),
        queue=ReviewQueue(
            cards=album.cards(queued),
            images=int(labels.needs_review.sum()),
            of_reason={reason: len(rows) for reason, rows in queues.items()},
        ),
        confidence=plots.confidence(
            labels.score, labels.score[~labels.needs_review], labels.zero_shot_score
        ),
        convergence=plots.convergence([batch.objective for batch in summary.batches]),
        sheets=tuple(
            ClassSheet(
                label=run.classes.labels[k],
                images=int((labels.label == k).sum()),
                typical=album.cards(typical),
                atypical=album.cards(atypical),
            )
            for k, (typical, atypical) in sheets.items()
        ),
        sheets_left_out=sheets_left_out,
        confusable=album.confusable,
        skipped=tuple(skipped[:MOST_SKIPPED]),
        skipped_left_out=max(0, len(skipped) - MOST_SKIPPED),
        facts=_facts(run),
        review_command=shlex.join(["transduce", "review", str(run.folder.with_name(name))]),
        certify_command=shlex.join(["transduce", "certify", str(run.folder.with_name(name))]),
        map=image_map(run, {*queued, *on_sheets}),
        certificate=certificate,
        sets=SetsSummary.of(sets) if sets is not None else None,
        risk=_risk(certificate),
        reliability=plots.reliability(evaluation.reliability if evaluation else ()),
        confusion=plots.confusion(evaluation.confusion if evaluation else (), run.classes.labels),
        mistakes=_mistakes(run),
    )


class _Album:
    """Makes the cards of the page; an image that is used twice is read once."""

    def __init__(self, run: RunDirectory, rows: Iterable[int]) -> None:
        self._run = run
        self._images = RunImages(run)
        self._names = label_names(run.classes)
        self._candidates, pairs = selection.summarize_probabilities(run, rows, CANDIDATES)
        self._made: dict[int, ImageCard] = {}
        confusable = pairs.most_confusable(MOST_CONFUSABLE, LEAST_SHARE) if pairs else []
        self.confusable = tuple(
            Confusable(self._names[first], self._names[second], share)
            for first, second, share in confusable
        )

    def cards(self, rows: Sequence[int]) -> tuple[ImageCard, ...]:
        for row in rows:
            if row not in self._made:
                self._made[row] = self._card(row)
        return tuple(self._made[row] for row in rows)

    def _card(self, row: int) -> ImageCard:
        table = self._run.labels
        truth = UNKNOWN if table.truth is None else table.truth[row]
        return ImageCard(
            row=row,
            file_name=table.file_name[row],
            href=_href(table.image_path[row]),
            thumbnail=self._images.data_url(row, THUMBNAIL_SIDE, THUMBNAIL_QUALITY),
            label=self._names[table.label[row]],
            score=float(table.score[row]),
            margin=float(table.margin[row]),
            distance=float(table.distance[row]),
            zero_shot_label=self._names[table.zero_shot_label[row]],
            zero_shot_score=float(table.zero_shot_score[row]),
            changed=bool(table.changed[row]),
            reasons=table.reasons(row),
            duplicate_of=table.duplicate_of[row],
            candidates=tuple((self._names[k], share) for k, share in self._candidates.get(row, ())),
            truth="" if truth == UNKNOWN else self._names[truth],
        )


def _risk(certificate: Certificate | None) -> Markup:
    if certificate is None:
        return Markup("")
    return plots.risk_coverage(
        certificate.tests,
        error=certificate.error,
        certified=certificate.certified_images,
        population=certificate.population,
    )


def _classes(
    classes: Sequence[ClassSummary],
) -> tuple[tuple[ClassSummary, ...], tuple[str, ...]]:
    """Return the classes that occur, the largest first, and the names of the others."""
    used = [entry for entry in classes if entry.joint or entry.zero_shot]
    used.sort(key=lambda entry: (-entry.joint, -entry.zero_shot))
    return tuple(used), tuple(entry.label for entry in classes if entry not in used)


def _flows(run: RunDirectory) -> tuple[Flow, ...]:
    """Return the commonest changes from zero-shot's label to the joint one."""
    names, labels = label_names(run.classes), run.labels
    moved = Counter(
        (int(old), int(new))
        for old, new in zip(labels.zero_shot_label, labels.label, strict=True)
        if old != new
    )
    return tuple(
        Flow(names[old], names[new], count) for (old, new), count in moved.most_common(MOST_FLOWS)
    )


def _mistakes(run: RunDirectory) -> tuple[Flow, ...]:
    """Return the commonest mistakes, from the truth to the label; empty without a truth."""
    if run.summary.evaluation is None:
        return ()
    names = label_names(run.classes)
    wrong = [
        Flow(names[truth], names[label], count)
        for truth, row in enumerate(run.summary.evaluation.confusion)
        for label, count in enumerate(row)
        if truth != label and count
    ]
    return tuple(sorted(wrong, key=lambda flow: -flow.images)[:MOST_FLOWS])


def _facts(run: RunDirectory) -> dict[str, str]:
    summary, settings = run.summary, run.settings
    present = f"{summary.classes_present:,}" + (" (estimated)" if summary.estimated else "")
    facts = {
        "source": settings.source,
        "classes": f"{len(run.classes):,} given, {present} taken as present while solving",
        "method": summary.method,
        "why": summary.choice,
        "prompts": ", ".join(settings.templates),
        "encoder": run.identity.encoder,
        "view": summary.view and f"images are compared by {summary.view}",
        "time": ", ".join(f"{stage} {spent:.1f} s" for stage, spent in summary.seconds.items()),
        "version": f"transduce {summary.version}" if summary.version else "",
    }
    return {name: value for name, value in facts.items() if value}


def _href(path: str) -> str:
    if not Path(path).is_absolute() or is_container(path):
        return ""
    return Path(path).as_uri()
