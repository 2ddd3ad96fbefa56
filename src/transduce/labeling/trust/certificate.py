"""The certificate of a run: how accurate its labels are, and how many can be trusted.

From an audit (`audit.py`) and the order of doubt (`doubt.py`) alone. The labels were made before
the audit was drawn and never saw its answers. The statistics are in `risk.py` and docs/trust.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from transduce.errors import InvalidAudit, InvalidSetting
from transduce.labeling.journal import Journal, line_of
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import label_names
from transduce.labeling.trust import risk
from transduce.labeling.trust.audit import Audit, fingerprint, read_audit, read_audits
from transduce.labeling.trust.risk import PrefixTest
from transduce.machine.atomic import read_json, replace_json

CERTIFICATE = "certificate.json"
FORMAT = "transduce-certificate"

Order = Int[np.ndarray, " trusted"]


@dataclass(frozen=True, kw_only=True)
class CertificateFacts:
    """`certificate.json`: the claim, and all that is needed to check it.

    Parameters
    ----------
    error, confidence : float
        What was asked: at most this share wrong, with this confidence.
    number, seed : int
        Of the draw: 1 for the first of the run, and what its images follow from.
    level : float
        The error probability that this draw may spend; all draws of a run share 1 - confidence.
    images, population : int
        Of the run, and those of them that were not labeled by hand.
    audited, wrong : int
        Images of the draw, and how many of their labels were wrong.
    unanswered : int
        Images of the draw without an answer, counted as wrong.
    accuracy : float
        The estimated share of right labels in the population.
    interval : tuple of float
        The same with `confidence`.
    counting_interval : tuple of float
        What plain counting would give.
    certified_images : int
        How many labels, the most trusted first, are certified; 0 for none.
    largest_doubt : float
        Of the certified labels.
    tests : tuple of PrefixTest
        The tests by size of the prefix: the risk-coverage curve.
    first_test : int
        The index of the test that the sequence began with.
    more : int or None
        How many further audited images would probably certify more; None if none would.
    fingerprint : str
        A hash of the labels and doubts it speaks about.
    sample : tuple of (str, str or None)
        The images drawn and the label each was given; None where there is no answer.
    """

    error: float
    confidence: float
    number: int
    seed: int
    level: float
    images: int
    population: int
    audited: int
    wrong: int
    unanswered: int
    accuracy: float
    interval: tuple[float, float]
    counting_interval: tuple[float, float]
    certified_images: int
    largest_doubt: float
    tests: tuple[PrefixTest, ...]
    first_test: int
    more: int | None
    fingerprint: str
    sample: tuple[tuple[str, str | None], ...]
    format: str = FORMAT
    version: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(CertificateFacts):
    """A certificate, and which labels it certifies.

    Parameters
    ----------
    certified : array of bool of shape (image,)
        Whether the label of each row of the run is certified.
    void : str
        Why the certificate says nothing any more; empty if it holds.
    """

    certified: Bool[np.ndarray, " image"]
    void: str = ""

    def facts(self) -> CertificateFacts:
        """What is in `certificate.json`."""
        names = (field.name for field in fields(CertificateFacts))
        return CertificateFacts(**{name: getattr(self, name) for name in names})


def certify(
    run: RunDirectory,
    answers: Mapping[str, str] | None = None,
    *,
    error: float = 0.05,
    confidence: float = 0.95,
    count_unanswered_as_wrong: bool = False,
) -> Certificate:
    """Certify the labels of a run by the answers of its last audit; writes `certificate.json`.

    Parameters
    ----------
    run : RunDirectory
        The run that `draw_audit` (or `transduce review --audit`) drew from.
    answers : mapping of str to str, optional
        The label (or `unknown`) of images of the draw, in addition to those in the journal.
    error : float, default=0.05
        The largest share of wrong labels among the certified ones.
    confidence : float, default=0.95
        How often, over all audits that could have been drawn, the claim is to hold.
    count_unanswered_as_wrong : bool, default=False
        Certify an audit that is not finished; otherwise it is refused.

    Returns
    -------
    Certificate
        With the accuracy of the run, its interval, and the certified labels.

    Raises
    ------
    InvalidAudit
        Where the answers prove nothing: no draw, not all of it, other images, labels that changed
        since, or answers that were used before with another limit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image, ImageDraw
    >>> import transduce
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in range(12):
    ...     image = Image.new("RGB", (64, 64), "white")
    ...     ImageDraw.Draw(image).ellipse((12, 12, 40 + number, 52), fill="red")
    ...     image.save(folder / f"{number}.png")
    >>> labels = transduce.label(folder, "red circle,blue circle", encoder="shapes")
    >>> audit = labels.run.audit(10)
    >>> answers = {name: "red circle" for name in audit.file_names}  # by a person who looks
    >>> certificate = transduce.certify(labels.run, answers, error=0.2, confidence=0.9)
    >>> certificate.wrong, round(certificate.accuracy, 3), int(certificate.certified.sum())
    (0, 1.0, 12)
    """
    _check_share("error", error, 0.05)
    _check_share("confidence", confidence, 0.95)
    audit = read_audit(run)
    if audit is None:
        raise InvalidAudit(
            f"Expected an audit of {run.folder}, found no draw; the images must be drawn at random "
            f"before they are answered: transduce review {run.folder} --audit 100"
        )
    if audit.void:
        raise InvalidAudit(f"Expected an audit that counts, found that {audit.void}; draw again.")
    if answers:
        _record(run, audit, answers)
        audit = read_audit(run)
        assert audit is not None
    if audit.unanswered and not count_unanswered_as_wrong:
        raise InvalidAudit(
            f"Expected all {len(audit):,} images of the audit to be answered, found "
            f"{len(audit.unanswered):,} without an answer; to stop when the answers look good "
            f"would prove nothing. Go on with: transduce review {run.folder} --audit {len(audit)}"
        )
    before = read_certificate(run)
    if before is not None and before.number == audit.number:
        _refuse_second_look(run, before, audit, error, confidence)
        if before.sample == _sample(audit):
            return before
    certificate = _certificate(run, audit, error, confidence)
    replace_json(Path(run.folder) / CERTIFICATE, certificate.facts())
    return certificate


def read_certificate(run: RunDirectory) -> Certificate | None:
    """Return the certificate of a run, None without one.

    Where labels or answers are no longer those it was made from, it is `void` and certifies none.
    """
    path = Path(run.folder) / CERTIFICATE
    if not path.exists():
        return None
    facts = read_json(path, CertificateFacts, error=InvalidAudit)
    void = ""
    audit = next((one for one in read_audits(run) if one.number == facts.number), None)
    if facts.fingerprint != fingerprint(run):
        void = "the labels changed since it was made"
    elif audit is None:
        void = "the answers it was made from are gone"
    elif audit.void:
        void = audit.void
    elif _sample(audit) != facts.sample:
        void = "the answers of the audit changed since it was made"
    certified = np.zeros(len(run.labels), bool)
    if not void:
        certified[trust_order(run)[: facts.certified_images]] = True
    given = {field.name: getattr(facts, field.name) for field in fields(CertificateFacts)}
    return Certificate(**given, certified=certified, void=void)


def trust_order(run: RunDirectory) -> Order:
    """Return the rows not labeled by hand, the most trusted first, whatever was answered."""
    rows = np.flatnonzero(~run.labels.corrected)
    return rows[np.argsort(run.labels.doubt[rows], kind="stable")]


def _check_share(name: str, value: float, usual: float) -> None:
    if not 0.0 < value < 1.0:
        why = "; no sample shows that nothing is wrong" if name == "error" and value == 0.0 else ""
        raise InvalidSetting(
            f"Expected {name} between 0 and 1, found {value:g}{why}; give {usual}, say."
        )


def _record(run: RunDirectory, audit: Audit, answers: Mapping[str, str]) -> None:
    """Put answers given in Python into the journal, refusing what was not drawn."""
    others = sorted(set(answers) - set(audit.file_names))
    if others:
        raise InvalidAudit(
            f"Expected answers about the {len(audit):,} images drawn, found {len(others):,} others "
            f"({others[0]} is one); images that were chosen, not drawn, prove nothing."
        )
    names = set(label_names(run.classes))
    for file_name, label in answers.items():
        if label not in names:
            raise InvalidAudit(
                f"Expected a class of the run or unknown for {file_name}, found {label!r}."
            )
    changed = {name: label for name, label in answers.items() if audit.answers.get(name) != label}
    if changed:
        lines = [line_of("audit", name, label) for name, label in changed.items()]
        Journal.open(run.folder).append_lines(lines)


def _refuse_second_look(
    run: RunDirectory, before: Certificate, audit: Audit, error: float, confidence: float
) -> None:
    """Refuse a sample that was used before with another limit, or with other answers."""
    left = int((~run.labels.corrected).sum()) - len(audit) - len(audit.known)
    again = "No image is left that was not audited."
    if left:
        size = min(len(audit), left)
        again = f"Draw new images for it: transduce review {run.folder} --audit {size}"
    if (before.error, before.confidence) != (error, confidence):
        raise InvalidAudit(
            f"Expected --error {before.error:g} --confidence {before.confidence:g}, for which this "
            f"audit was used already, found {error:g} and {confidence:g}; a limit that is chosen "
            f"after looking proves nothing. {again}"
        )
    # Answers that were missing counted as wrong: to add them can only confirm what was certified.
    changed = [
        name
        for name, label in before.sample
        if label is not None and label != audit.answers.get(name)
    ]
    if changed:
        raise InvalidAudit(
            f"Expected the answers that the certificate was made from, found {len(changed):,} "
            f"changed since ({changed[0]} is one); answers that are changed after looking prove "
            f"nothing. {again}"
        )


def _sample(audit: Audit) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, audit.answers.get(name)) for name in audit.file_names)


def _certificate(run: RunDirectory, audit: Audit, error: float, confidence: float) -> Certificate:
    order = trust_order(run)
    doubt = run.labels.doubt[order].astype(np.float64)
    sample = _in_order(run, audit, order)
    level = risk.level_of(audit.number, confidence)
    tests, first = risk.prefix_tests(doubt, sample, error, level)
    size = max((test.size for test in tests if test.passed), default=0)
    certified = np.zeros(len(run.labels), bool)
    certified[order[:size]] = True
    share, (low, high) = risk.wrong_share(doubt, sample, confidence)
    if audit.unanswered:  # they count as wrong above; at best they are right
        answered = np.array([name in audit.answers for name in audit.file_names])
        at_best = replace(sample, wrong=sample.wrong & answered)
        low = risk.wrong_share(doubt, at_best, confidence)[1][0]
    more = None
    if size < len(order):
        level_then = risk.level_of(audit.number + 1, confidence)
        left = len(order) - len(audit) - len(audit.known)
        more = risk.enough(doubt, share, size, error, level_then, left)
    wrong = int(sample.wrong.sum())
    counting = risk.counting_interval(
        wrong + int(sample.known_wrong.sum()), len(audit) + len(audit.known), confidence
    )
    return Certificate(
        error=error,
        confidence=confidence,
        number=audit.number,
        seed=audit.seed,
        level=level,
        images=len(run.labels),
        population=len(order),
        audited=len(audit),
        wrong=wrong,
        unanswered=len(audit.unanswered),
        accuracy=1.0 - share,
        interval=(1.0 - high, 1.0 - low),
        counting_interval=(1.0 - counting[1], 1.0 - counting[0]),
        certified_images=size,
        largest_doubt=float(doubt[:size].max(initial=0.0)),
        tests=tests,
        first_test=first,
        more=more,
        fingerprint=fingerprint(run),
        sample=_sample(audit),
        certified=certified,
    )


def _in_order(run: RunDirectory, audit: Audit, order: Order) -> risk.AuditSample:
    """Return the answers by their ranks in the order of trust."""
    rank = np.full(len(run.labels), -1)
    rank[order] = np.arange(len(order))
    names = np.array(label_names(run.classes), object)[run.labels.label]
    given = [audit.answers.get(name) for name in audit.file_names]
    known = np.array(sorted(audit.known), np.int64)
    return risk.AuditSample(
        drawn=rank[audit.rows],
        wrong=np.array(given, object) != names[audit.rows],
        known=rank[known],
        known_wrong=np.array([audit.known[row] for row in known.tolist()], object) != names[known],
    )
