"""The report as a reader meets it."""

from pathlib import Path

import pytest

from tests.labeling.report.small_runs import small_run
from tests.labeling.stores import write_simulated
from transduce.labeling.report.page import write_report
from transduce.labeling.table import CHANGED, CLOSE_CALL

AWKWARD = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "plain \U0001f98a")


@pytest.fixture
def report(tmp_path):
    names = [f"{number}<b onclick=alert(3)>'\".png" for number in range(60)]
    run = small_run(tmp_path, names=names, classes=AWKWARD, seed=3)
    return run, write_report(run).as_uri()


def shown(page):
    return page.locator("#cards > li:visible")


def test_filter_sort_and_search(visit, report):
    run, address = report
    page = visit(address)
    table = run.labels
    doubtful = table.needs_review
    assert shown(page).count() == doubtful.sum() > 5
    page.get_by_role("button", name=CHANGED).click()
    changed = [CHANGED in reason for reason in table.reason]
    assert 0 < shown(page).count() == sum(changed) < doubtful.sum()
    assert f"{sum(changed)} of {doubtful.sum()} shown" in page.locator("#shown").inner_text()
    page.locator("[data-reason='']").click()
    page.locator("#class").select_option(AWKWARD[1])
    assert shown(page).count() == (doubtful & (table.label == 1)).sum()
    page.locator("#class").select_option("")
    page.locator("#order").select_option("margin")
    margins = [float(card.get_attribute("data-margin")) for card in shown(page).all()]
    assert margins == sorted(margins)
    page.locator("#order").select_option("distance")
    distances = [float(card.get_attribute("data-distance")) for card in shown(page).all()]
    assert distances == sorted(distances, reverse=True)


def test_by_keyboard_alone(visit, report):
    run, address = report
    page = visit(address)
    wanted = run.labels.file_name[int(run.labels.needs_review.argmax())]
    page.keyboard.press("/")
    page.keyboard.type(wanted.upper())
    assert shown(page).count() == 1
    page.keyboard.press("Escape")
    assert shown(page).count() == run.labels.needs_review.sum()
    shown(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement === document.querySelectorAll('#cards > li')[1]")
    page.get_by_role("button", name=CLOSE_CALL).focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name=CLOSE_CALL).get_attribute("aria-pressed") == "true"


def test_it_fits_the_screen(visit, report):
    page = visit(report[1])
    for width in (360, 768, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_opened_at_a_section_it_is_there_at_once(visit, report):
    heading = visit(report[1] + "#changed").locator("#changed h2")
    assert 0 <= heading.evaluate("heading => heading.getBoundingClientRect().top") < 40


def test_dark_mode_is_dark(visit, report):
    page = visit(report[1])

    def brightness(scheme):
        page.emulate_media(color_scheme=scheme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, color.removeprefix("rgb(").rstrip(")").split(",")))

    assert brightness("dark") < 150 < 600 < brightness("light")


def test_without_scripts_everything_can_be_read(visit, report):
    run, address = report
    page = visit(address, scripts=False)
    assert shown(page).count() == run.labels.needs_review.sum()
    assert not page.locator("#controls").is_visible()
    assert page.locator("h2").all_inner_texts()[:2] == ["To check", "Classes"]


@pytest.fixture
def mapped(tmp_path):
    """A report with a map: 60 images with features."""
    names = [f"{number}<b onclick=alert(3)>.png" for number in range(60)]
    run = small_run(tmp_path, names=names, classes=AWKWARD, seed=3)
    write_simulated(run.folder / "features", images=60, classes=AWKWARD)
    return run, write_report(run).as_uri()


def test_the_map_shows_images_and_selects_them(visit, mapped):
    run, address = mapped
    page = visit(address)
    dots = page.locator("#map circle")
    assert dots.count() == 60
    assert page.locator("#map circle.check").count() == run.labels.needs_review.sum()
    dots.nth(7).scroll_into_view_if_needed()
    box = dots.nth(7).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    card = page.locator("#map-card")
    assert card.is_visible()
    assert card.locator("img, canvas").count() == 1
    assert ".png" in card.inner_text()
    area = page.locator("#map").bounding_box()
    left, top = area["x"] + 1, area["y"] + 1
    right, bottom = area["x"] + area["width"] - 2, area["y"] + area["height"] - 2
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    assert "60 images selected" in page.locator("#map-count").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save list").click()
    names = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert sorted(names) == sorted(run.labels.file_name)
    assert "--only selection.txt" in page.locator("#map-selection").inner_text()
    page.get_by_role("button", name="Clear").click()
    assert not page.locator("#map-selection").is_visible()
    page.locator("[data-map-class='0']").click()
    counts = [int((run.labels.label == k).sum()) for k in range(len(AWKWARD))]
    assert page.locator("#map circle.lit").count() == max(counts)
    assert page.locator("#map circle.dim").count() == 60 - max(counts)


def test_nothing_scrolls_sideways_and_no_table_is_cut(visit, mapped):
    _, address = mapped
    page = visit(address)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        cut = page.evaluate(
            "[...document.querySelectorAll('.scroll')]"
            ".filter((box) => box.scrollHeight > box.clientHeight + 20).length"
        )
        assert cut == 0


def test_the_page_of_a_benchmark_fits_a_phone_and_the_dark(visit, tmp_path):
    """results/real as it is committed: navigation, and figures in the page's own colors."""
    from transduce.benchmark.execute import stored_results
    from transduce.benchmark.plan import plan_suite
    from transduce.benchmark.report.page import suite_page
    from transduce.benchmark.report.suite_report import report_suite
    from transduce.benchmark.suite_files import load_suite

    suite = load_suite("real")
    results = stored_results(plan_suite(suite), Path(__file__).parents[2] / "results/real")
    text = suite_page(report_suite(suite, results, "transduce bench real"))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page = visit((tmp_path / "page.html").as_uri())
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert "in brackets the paper" not in text
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    table = page.locator("table").first
    widths = [cell.bounding_box() for cell in table.locator("tbody tr").first.locator("td").all()]
    assert sum(box is not None and box["x"] + box["width"] <= 390 for box in widths) >= 2
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert dark != "rgb(255, 255, 255)"
    assert ink == page.evaluate("getComputedStyle(document.body).color")
