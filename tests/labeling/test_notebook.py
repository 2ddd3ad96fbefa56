"""`transduce.label`: labels in memory, as a table, as a card, and on disk when asked."""

import gc
import json
import runpy
import sys
from pathlib import Path

import pytest

import transduce
from tests.cli.drawings import CLASSES, write_drawings
from transduce.encoders import load_encoder
from transduce.errors import InvalidClasses, InvalidSetting, MissingExtra
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory

NAMES = CLASSES.split(",")


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = write_drawings(tmp_path_factory.mktemp("drawn") / "<b> images", 9)
    (folder / "000.png").rename(folder / "<i>0.png")
    return transduce.label(folder, NAMES, encoder="shapes")


def test_labels_in_order(labels):
    assert len(labels) == 9
    by_name = dict(zip(labels.run.labels.file_name, labels.names, strict=True))
    assert by_name["<i>0.png"] == "red circle"
    assert by_name["001.png"] == "blue square"
    assert "9 images" in str(labels)


def test_pairs_length_and_a_short_repr(labels):
    assert dict(labels) == dict(zip(labels.run.labels.file_name, labels.names, strict=True))
    assert repr(labels).startswith("<Labels of 9 images: red circle ")
    assert "\n" not in repr(labels)
    assert labels != transduce.Labels(labels.run)  # by identity: columns are arrays


def test_the_run_alone_keeps_its_files(labels):
    run = transduce.label(labels.run.settings.source, CLASSES, encoder="shapes").run
    gc.collect()
    assert run.probabilities().shape == (9, len(NAMES))
    assert len(run.store().keys()) == 9
    folder = run.folder
    del run
    gc.collect()
    assert not folder.exists()


def test_a_loaded_encoder_and_classes_as_text(labels):
    encoder = load_encoder("shapes")
    source = labels.run.settings.source
    assert dict(transduce.label(source, CLASSES, encoder=encoder)) == dict(labels)


def test_images_embedded_before(labels):
    again = transduce.label(labels.run.store(), NAMES)
    assert dict(again) == dict(labels)
    assert again.run.identity == labels.run.identity


def test_a_table_for_pandas(labels, monkeypatch):
    table = labels.to_pandas()
    assert list(table["label"]) == labels.names
    shares = table[[f"p({name})" for name in NAMES]]
    assert shares.sum(axis=1).round(4).eq(1.0).all()
    assert list(shares.idxmax(axis=1)) == [f"p({name})" for name in labels.names]
    assert not [name for name in labels.to_pandas(probabilities=False) if name.startswith("p(")]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"transduce\[notebook\]"):
        labels.to_pandas()


def test_a_card_for_notebooks(labels, capsys):
    card = labels._repr_html_()
    assert card.count("data:image/jpeg;base64,") == 9
    assert "<i>" not in card
    assert "&lt;i&gt;0.png" in card
    labels.show()  # outside a notebook: the summary
    assert "9 images" in capsys.readouterr().out


def test_nothing_stays_until_it_is_saved(labels, tmp_path):
    folder = labels.save(tmp_path / "out")
    assert folder == tmp_path / "out" / "transduce-001"
    assert (folder / "report.html").is_file()
    saved = RunDirectory.load(folder)
    assert saved.labels.file_name == labels.run.labels.file_name
    assert len(saved.store()) == 9
    other = transduce.label(
        Path(labels.run.settings.source), NAMES, encoder="shapes", method="zero-shot"
    )
    folder = other.run.folder
    assert folder.exists()
    del other
    assert not folder.exists()


def test_bad_classes_are_refused(tmp_path):
    with pytest.raises(InvalidClasses):
        transduce.label(tmp_path, ["cat"])


def test_answers_count_at_once_and_exports_are_a_method(labels, tmp_path):
    name = labels.run.labels.file_name[0]
    before = dict(labels)[name]
    other = next(label for label in NAMES if label != before)
    journal = Journal.open(labels.run.folder)
    journal.append("review", name, other)
    assert dict(labels)[name] == other
    assert labels.to_pandas()["label"][0] == other
    out = labels.export("csv", tmp_path / "new/labels.csv")
    assert f"{name},{other}," in out.read_text()
    with pytest.raises(InvalidSetting, match="nothing at"):
        labels.export("csv", out)
    plain = labels.export("csv", tmp_path / "plain.csv", review=False)
    assert f"{name},{before}," in plain.read_text()
    journal.append("undo", name)
    assert dict(labels)[name] == before


def test_the_review_page_is_a_method(labels, monkeypatch):
    addresses = []

    def serve(session, port, announce):
        announce(f"http://127.0.0.1:{port}/")
        addresses.append(session.state()["left"])
        raise KeyboardInterrupt

    monkeypatch.setattr("transduce.labeling.review.app.serve_review", serve)
    labels.review(everything=True, browser=False)
    assert addresses == [9]


def test_the_notebook_of_the_docs_runs(tmp_path, monkeypatch):
    notebook = Path(__file__).parents[2] / "docs/first_labels.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text("\n".join(code), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path("cells.py")
    assert len(made["labels"]) == 60
    assert (tmp_path / "labels.csv").exists()
    assert all(not cell.get("outputs") for cell in cells)  # what it shows, it shows when run
