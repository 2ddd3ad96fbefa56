"""What a run found, in figures: `summary.json`, for the terminal, the report and scripts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSummary:
    """One line of the table of classes."""

    label: str
    zero_shot: int  # images that zero-shot gives this class
    joint: int  # images labeled with it
    sure: int  # of these, the ones not to review
    review: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """How one batch was solved."""

    images: int
    method: str
    classes_present: int  # what the weight of the method came from
    iterations: int
    converged: bool
    objective: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """One class against the truth."""

    label: str
    images: int  # that are of this class
    zero_shot: float  # share of them labeled so; NaN-free: 0.0 without images
    joint: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Images whose score lies in [low, high): how sure they were, and how often right."""

    low: float
    high: float
    images: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Against the truth. Intervals are 95 % (Wilson); the gain has McNemar's exact test."""

    images: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    zero_shot_accuracy: float
    zero_shot_interval: tuple[float, float]
    mended: int  # wrong by zero-shot, right now
    broken: int  # right by zero-shot, wrong now
    p_value: float
    recalls: tuple[Recall, ...]
    confusion: tuple[tuple[int, ...], ...]  # truth x label; the last column is unknown
    reliability: tuple[ReliabilityBin, ...]
    calibration_error: float

    @property
    def gain(self) -> float:
        return self.accuracy - self.zero_shot_accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    images: int
    skipped: int
    duplicates: int
    method: str
    choice: str  # why this method and this number of classes, in words
    classes_present: int
    estimated: bool  # whether that number is an estimate
    changed: int
    needs_review: int
    unknown: int
    corrected: int
    classes: tuple[ClassSummary, ...]
    batches: tuple[BatchSummary, ...]
    warnings: tuple[str, ...] = ()  # "the joint answer looks collapsed ..." and the like
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    command: str = ""
    version: str = ""
    evaluation: Evaluation | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Summary":
        values = dict(found)
        values["classes"] = tuple(ClassSummary(**entry) for entry in found["classes"])
        values["batches"] = tuple(_batch(entry) for entry in found["batches"])
        values["warnings"] = tuple(found["warnings"])
        if found["evaluation"] is not None:
            values["evaluation"] = _evaluation(found["evaluation"])
        return cls(**values)


def _batch(found: Mapping[str, Any]) -> BatchSummary:
    return BatchSummary(**{**found, "objective": tuple(found["objective"])})


def _evaluation(found: Mapping[str, Any]) -> Evaluation:
    return Evaluation(
        **{
            **found,
            "accuracy_interval": tuple(found["accuracy_interval"]),
            "zero_shot_interval": tuple(found["zero_shot_interval"]),
            "recalls": tuple(Recall(**entry) for entry in found["recalls"]),
            "confusion": tuple(tuple(row) for row in found["confusion"]),
            "reliability": tuple(ReliabilityBin(**entry) for entry in found["reliability"]),
        }
    )
