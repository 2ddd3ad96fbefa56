"""What the page shows, ready for the template: plain values, nothing left to compute."""

from dataclasses import dataclass, field

from markupsafe import Markup

from transduce.features.layout import Skip
from transduce.labeling.summary import BatchSummary, ClassSummary, Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One image of the page."""

    row: int
    file_name: str
    href: str  # file:// of the whole picture; "" if it is not a file on this machine
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
class Sheet:
    """One class in pictures, the surest and the least sure of it."""

    label: str
    images: int
    typical: tuple[Picture, ...]
    atypical: tuple[Picture, ...]


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

    pictures: tuple[Picture, ...]
    images: int  # all that need a look
    of_reason: dict[str, int]  # counted over all of them

    @property
    def left_out(self) -> int:
        return self.images - len(self.pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    name: str  # of the run
    source: str
    images: int
    class_count: int
    changed: int
    unknown: int
    corrected: int
    duplicates: int
    method: str
    choice: str
    warnings: tuple[str, ...]
    classes: tuple[ClassSummary, ...]  # those that any image got, the largest first
    empty_classes: tuple[str, ...]
    flows: tuple[Flow, ...]
    queue: ReviewQueue
    confidence: Markup
    convergence: Markup
    batches: tuple[BatchSummary, ...]
    sheets: tuple[Sheet, ...]
    sheets_left_out: int
    confusable: tuple[Confusable, ...]
    skipped: tuple[Skip, ...]
    skipped_left_out: int
    facts: dict[str, str]
    command: str
    review_command: str
    evaluation: Evaluation | None = None
    reliability: Markup = field(default_factory=Markup)
    confusion: Markup = field(default_factory=Markup)
    mistakes: tuple[Flow, ...] = ()
