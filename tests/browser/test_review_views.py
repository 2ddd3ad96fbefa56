"""The other ways through a review: an audit by keyboard, a grid, search, the list of answers."""

import json

import pytest

from tests.browser.test_review import Served, open_review, press, right_answer, run  # noqa: F401
from transduce.labeling.answers import answered_labels
from transduce.labeling.exports import EXPORTERS
from transduce.labeling.journal import ANSWERS, REVIEWED
from transduce.labeling.review.session import ReviewSession
from transduce.labeling.trust.audit import draw_audit, read_audit
from transduce.labeling.trust.certificate import certify

AUDITED = 60


@pytest.fixture
def session(run):  # noqa: F811
    for name in (ANSWERS, REVIEWED):
        (run.folder / name).unlink(missing_ok=True)
    return ReviewSession(run)


@pytest.fixture
def page(session, visit):
    with Served(session) as server:
        yield open_review(visit, server)


def exported(run, folder):  # noqa: F811
    """The label of each file, in the lines that an export wrote."""
    path = folder / "labels.jsonl"
    EXPORTERS["jsonl"](answered_labels(run), path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["file_name"]: line["label"] for line in lines}


def test_an_audit_by_keyboard_gives_a_certificate(run, session, visit, tmp_path):  # noqa: F811
    drawn = draw_audit(run, AUDITED, seed=7)
    with Served(ReviewSession(run, audit=drawn)) as server:
        page = open_review(visit, server)
        assert page.locator("#progress-words").inner_text() == f"1 of {AUDITED}"
        assert not page.locator("#to-grid").is_visible()
        for number in range(AUDITED):
            assert page.locator("#progress-words").inner_text().startswith(f"{number + 1} of ")
            wanted, claimed = right_answer(run, page), page.locator("#question b").inner_text()
            if wanted == claimed:
                press(page, "Enter")
            else:
                press(page, "/")
                page.keyboard.type(wanted)
                press(page, "Enter")
        assert page.locator("#done-title").inner_text() == "The audit is complete"
        assert "transduce certify" in page.locator("#done-command").inner_text()
    assert read_audit(run).complete
    assert run.corrections() == {}
    truth = dict(zip(run.labels.file_name, run.labels.truth, strict=True))
    wrong = sum(
        run.labels.label[run.labels.file_name.index(name)] != truth[name]
        for name in drawn.file_names
    )
    certificate = certify(run, error=0.5, confidence=0.9)
    assert (certificate.audited, certificate.wrong) == (AUDITED, wrong)
    accuracy = (run.labels.label == run.labels.truth).mean()
    assert certificate.interval[0] <= accuracy <= certificate.interval[1]
    labels = exported(run, tmp_path)
    for name in drawn.file_names:
        assert labels[name] == run.classes.labels[truth[name]]


def test_a_grid_is_corrected_in_ten_keys_and_the_export_has_it(run, page, tmp_path):  # noqa: F811
    keys = 0

    def tap(key):
        nonlocal keys
        keys += 1
        press(page, key)

    tap("g")
    page.locator("#cells li").first.wait_for()
    cells = [int(cell.get_attribute("data-row")) for cell in page.locator("#cells li").all()]
    title = page.locator("#grid-title b").inner_text()
    for key in ("ArrowRight", "Space", "ArrowRight", "ArrowRight", "Space"):
        tap(key)
    assert page.locator("#cells [aria-selected=true]").count() == 2
    tap("Enter")
    page.locator("#work").wait_for()
    marked = [cells[1], cells[3]]
    for row in marked:
        assert page.locator("#work").get_attribute("data-row") == str(row)
        tap("2")
    assert keys <= 10
    page.locator("#cells").wait_for()  # the grid goes on by itself
    given = run.corrections()
    assert len(given) == len(cells)
    names = run.labels.file_name
    assert all(given[names[row]] == title for row in cells if row not in marked)
    assert all(given[names[row]] != title for row in marked)
    labels = exported(run, tmp_path)
    assert {name: labels[name] for name in given} == given
    press(page, "z")
    assert len(run.corrections()) == len(cells) - 1


def test_the_beginning_of_a_name_is_enough(run, page):  # noqa: F811
    first = page.locator("#file").inner_text()
    press(page, "/")
    page.keyboard.type("purp")
    page.keyboard.press("Enter")
    assert "classes fit “purp”" in page.locator("#class-problem").inner_text()
    page.keyboard.type("PURPLE STA")  # what was refused is selected, so this replaces it
    press(page, "Enter")
    assert run.corrections() == {first: "purple star"}
    second = page.locator("#file").inner_text()
    press(page, "/")
    page.keyboard.type("purp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#matches [aria-selected=true]").inner_text()
    press(page, "Enter")
    assert run.corrections()[second] == chosen
    press(page, "l")
    assert page.locator("#answers li").count() == 2
    press(page, "Enter")  # the last answer has the focus: it is asked again
    assert page.locator("#file").inner_text() == second
    assert chosen in page.locator("#why").inner_text()
    press(page, "ArrowDown")
    press(page, "Enter")
    assert run.corrections()[second] != chosen


def test_images_are_found_by_words_and_get_a_new_class(run, page, tmp_path):  # noqa: F811
    press(page, "f")
    page.keyboard.type("black cross")
    press(page, "Enter")
    found = page.locator("#cells .name").all_inner_texts()
    assert found[:5].count("black cross") >= 3
    press(page, "Space")
    press(page, "ArrowRight")
    press(page, "Space")
    page.keyboard.press("/")
    page.keyboard.type("raven")
    page.keyboard.press("Enter")
    assert "Enter once more" in page.locator("#marked-problem").inner_text()
    press(page, "Enter")
    assert set(run.corrections().values()) == {"unknown"}
    assert page.locator("#missing-words").inner_text() == "raven: 2 images"
    assert "--classes-file" in page.locator("#missing-command").inner_text()
    press(page, "Escape")
    press(page, "m")
    assert page.locator("#cells li").count() == 60
    labels = exported(run, tmp_path)
    assert {labels[name] for name in run.corrections()} == {"raven"}


def test_keys_and_widths(page):
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    press(page, "g")
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
