"""The page as a file: what it says, how large it is, and that names cannot break out of it."""

import base64
import hashlib
import io
import re
import tarfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.features.tiny_encoder import TinyEncoder
from tests.labeling.report.small_runs import draw_images, small_run
from tests.labeling.trust.audited_runs import run_with_doubts, true_answers
from transduce.features.embedding import embed
from transduce.labeling.answers import answered_labels
from transduce.labeling.journal import Journal
from transduce.labeling.report import selection
from transduce.labeling.report.page import write_report
from transduce.labeling.trust.audit import draw_audit
from transduce.labeling.trust.certificate import certify

NASTY = [
    "<script>alert(1)</script>.png",  # a folder and a file in it
    'quote" onerror="alert(1).png',
    "it's {{ 7 * 7 }} & more.png",
    "\U0001f431 \u202egnp.exe.png",
    "]]><img src=x onerror=alert(1)>.png",
    "javascript:alert(1).png",
]
NASTY_CLASSES = (
    "</script><script>alert(2)</script>",
    "\"'><svg onload=alert(3)>",
    "{% raw %} \U0001f98a",
)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.scripts, self._inside = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            self.scripts.append((self._inside, data))
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def page_with(folder, names, classes):
    run = small_run(folder, names=names, classes=classes, probabilities=[[0.4, 0.35, 0.25]] * 6)
    return Page(write_report(run).read_text(encoding="utf-8"))


@pytest.fixture
def nasty(tmp_path):
    return page_with(tmp_path / "nasty", NASTY, NASTY_CLASSES)


@pytest.fixture
def plain(tmp_path):
    return page_with(tmp_path / "plain", list("abcdef"), ("g", "h", "i"))


def test_names_are_text_and_nothing_else(nasty, plain):
    for name in (*NASTY, *NASTY_CLASSES):
        assert " ".join(name.split()) in nasty.text
    assert [kind for kind, _ in nasty.scripts] == ["style", "script"]
    assert Counter(tag for tag, _ in nasty.tags) == Counter(tag for tag, _ in plain.tags)


def test_nothing_comes_from_elsewhere(nasty):
    for tag, attributes in nasty.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "style" not in attributes
        if "src" in attributes:
            assert attributes["src"].startswith("data:image/jpeg;base64,")
        if "href" in attributes:
            assert re.match(r"#\w|data:,$|file:///", attributes["href"])


def test_the_policy_allows_this_script_and_no_other(nasty):
    (policy,) = [a["content"] for tag, a in nasty.tags if "Content-Security-Policy" in a.values()]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, text in nasty.scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_a_link_leads_to_the_image(nasty):
    links = [a["href"] for tag, a in nasty.tags if tag == "a" and a.get("class") == "thumbnail"]
    assert links
    for link in links:
        assert '"' not in link
        assert "<" not in link


def test_it_says_what_the_run_found(tmp_path):
    run = small_run(tmp_path)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "12 images in 3 classes" in page.text
    assert f"right, by the truth {run.summary.evaluation.accuracy:.1%}" in page.text
    assert "transduce label photos/ --classes cat,dog,fox" in page.text
    assert f"transduce review {run.folder}" in page.text
    assert "broken <i>.png corrupt bad header" in page.text
    thumbnails = [a["src"] for tag, a in page.tags if tag == "img"]
    image = Image.open(io.BytesIO(base64.b64decode(thumbnails[0].partition(",")[2])))
    assert image.size == (40, 30)


def test_without_truth_there_is_no_section_of_it(tmp_path):
    page = Page(write_report(small_run(tmp_path, truth=False)).read_text(encoding="utf-8"))
    assert "Against the truth" not in page.text
    assert "truth:" not in page.text


def test_many_images_make_a_file_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "MOST_QUEUED", 20)
    names = [f"{number}.png" for number in range(500)]
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    paths = [tmp_path / "noise.png"] * 500  # noise is the worst that a thumbnail can be
    run = small_run(tmp_path, names=names, paths=paths, probabilities=[[0.5, 0.4, 0.1]] * 500)
    path = write_report(run)
    page = Page(path.read_text(encoding="utf-8"))
    assert sum("data-order" in attributes for _, attributes in page.tags) == 20
    assert "500 images to look at. Here are 20" in page.text
    assert "the other 480 are in labels.csv" in page.text
    assert path.stat().st_size < 40 * 20_000


def test_images_that_are_gone_leave_their_names(tmp_path):
    run = small_run(tmp_path)
    for path in run.labels.image_path:
        Path(path).unlink()
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "image not found" in page.text
    assert "img" not in {tag for tag, _ in page.tags}


def test_images_inside_an_archive_are_found(tmp_path):
    names = ["a.png", "b.png", "c.png", "d.png"]
    draw_images(tmp_path / "loose", names)
    archive = tmp_path / "all.tar"
    with tarfile.open(archive, "w") as file:
        for name in names:
            file.add(tmp_path / "loose" / name, name)
    run = small_run(tmp_path, names=names, paths=[archive] * 4)
    embed(archive, TinyEncoder(), out=run.folder / "features")
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "image missing" not in page.text
    assert len({a["src"] for tag, a in page.tags if tag == "img"}) == 4
    assert not [a for tag, a in page.tags if tag == "a" and a.get("class") == "thumbnail"]


def test_without_images_at_all_the_page_is_whole(tmp_path):
    run = small_run(tmp_path, paths=[""] * 12)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "image not found" not in page.text
    assert "--images FOLDER" in page.text
    assert "--audit" not in page.text


def test_one_image_alone(tmp_path):
    run = small_run(tmp_path, images=1, objective=())
    assert "1 image in 1 class" in Page(write_report(run).read_text(encoding="utf-8")).text


def test_writing_again_replaces_the_page(tmp_path):
    run = small_run(tmp_path)
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


def test_the_certificate_has_a_section_with_its_curve(tmp_path):
    run = run_with_doubts(tmp_path)
    audit = draw_audit(run, 150, seed=1)
    certificate = certify(run, true_answers(run, audit))
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert f"{certificate.certified_images:,} of {certificate.population:,} labels" in page.text
    assert "Risk and coverage" in page.text
    labels = answered_labels(run)
    np.testing.assert_array_equal(labels.certified, certificate.certified)
    name = audit.file_names[0]
    other = next(k for k in run.classes.labels if k != true_answers(run, audit)[name])
    Journal.open(run.folder).append("audit", name, other)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "The certificate is void" in page.text
    assert answered_labels(run).certified is None


def test_words_of_a_promise_are_not_used(tmp_path):
    page = Page(write_report(small_run(tmp_path)).read_text(encoding="utf-8"))
    assert "sure" not in page.text.replace("changed from a sure zero-shot label", "").split()
    assert "no image is in doubt" not in page.text
