"""The whole way of a first user: label, look, correct images by keyboard, solve again."""

import re
import threading

import pytest
import uvicorn

from transduce.benchmark.synthetic import UNSEEN, name_of
from transduce.cli.demo import draw_folder, write_lists
from transduce.encoders.class_names import ClassNames
from transduce.labeling.journal import ANSWERS, REVIEWED
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.report.page import write_report
from transduce.labeling.review.app import _listen, create_app
from transduce.labeling.review.session import ReviewSession
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings

# With ten the others move by one image either way on 150 drawn ones; thirty must help them.
CORRECTIONS = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The demo's images, labeled, with the truth beside them."""
    folder = tmp_path_factory.mktemp("a 'demo' <b>")
    names = [name_of(pair) for pair in UNSEEN]
    write_lists(folder, draw_folder(folder / "images", images=150, classes=8, seed=0))
    classes = ClassNames.of(names)
    settings = LabelSettings(
        source=str(folder / "images"), classes=classes.labels, prompts=classes.prompts,
        truth=str(folder / "truth.csv"), encoder="shapes",
    )  # fmt: skip
    done = run_labeling(settings, folder / "out")
    write_report(done)
    return done


@pytest.fixture
def server(run):
    """`transduce review` in a thread; the command itself is tested where it is cheaper."""
    for name in (ANSWERS, REVIEWED):
        (run.folder / name).unlink(missing_ok=True)
    with Served(ReviewSession(run)) as served:
        yield served


class Served:
    def __init__(self, session):
        self._listener = _listen(0)
        port = self._listener.getsockname()[1]
        app = create_app(session, token="token", port=port)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))
        self.address = f"http://127.0.0.1:{port}/token/"

    def __enter__(self):
        self._thread.start()
        return self

    def stop(self):
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._listener.close()

    def __exit__(self, *error):
        self.stop()


def open_review(visit, server):
    page = visit(server.address)
    page.locator("#work").wait_for()
    return page


def right_answer(run, page):
    name = page.locator("#file").inner_text()
    return run.classes.labels[run.labels.truth[run.labels.file_name.index(name)]]


def press(page, key):
    """A key, and the wait for what the server says to it."""
    page.keyboard.press(key)
    page.locator("body:not([aria-busy])").wait_for()


def answer(run, page):
    """The true class, by its digit if it is offered, else by typing its name."""
    if page.locator("#done").is_visible():
        press(page, "a")
    wanted = right_answer(run, page)
    offered = page.locator("#candidates li span:nth-child(2)").all_inner_texts()
    if wanted in offered:
        press(page, str(offered.index(wanted) + 1))
    else:
        press(page, "/")
        page.keyboard.type(wanted)
        press(page, "Enter")


def test_thirty_corrections_make_the_answer_better(run, server, visit):
    report = visit((run.folder / "report.html").as_uri())
    assert report.locator("#cards > li").count() == run.summary.needs_review
    page = open_review(visit, server)
    assert page.locator("#image").evaluate("image => image.decode().then(() => image.naturalWidth)")
    for _ in range(CORRECTIONS):
        answer(run, page)
    corrections = run.corrections()
    assert len(corrections) == CORRECTIONS

    page.keyboard.press("r")
    page.locator("#solved").wait_for()
    again = RunDirectory.load(page.locator("#folder").inner_text())
    text = page.locator("#accuracy").inner_text()
    before, after = (float(number) for number in re.findall(r"([\d.]+) %", text))
    assert before == pytest.approx(100 * (run.labels.label == run.labels.truth).mean(), abs=0.1)
    assert after == pytest.approx(100 * (again.labels.label == run.labels.truth).mean(), abs=0.1)
    assert after > before
    # Not only because the corrected images are right now: the others did not get worse.
    others = ~again.labels.corrected
    right = [(labels.label == run.labels.truth)[others] for labels in (run.labels, again.labels)]
    assert right[1].sum() >= right[0].sum()
    assert again.corrections() == corrections
    assert (again.folder / "report.html").exists()
    assert page.locator("#run").inner_text() == again.folder.name


def test_unknown_skip_and_undo_by_key(run, server, visit):
    page = open_review(visit, server)
    first = page.locator("#file").inner_text()
    press(page, "u")
    assert run.corrections() == {first: "unknown"}
    second = page.locator("#file").inner_text()
    press(page, "s")
    assert page.locator("#file").inner_text() not in (first, second)
    press(page, "Backspace")
    assert page.locator("#file").inner_text() == second
    press(page, "z")
    assert page.locator("#file").inner_text() == first
    assert run.corrections() == {}
    assert page.locator("#undo").is_disabled()


def test_it_fits_the_screen(server, visit):
    page = open_review(visit, server)
    for width in (360, 768, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_server_that_is_gone_is_said(server, visit):
    page = open_review(visit, server)
    page.wait_for_load_state("networkidle")
    server.stop()
    page.keyboard.press("s")
    page.locator("#problem").wait_for()
    assert "still running" in page.locator("#problem").inner_text()
