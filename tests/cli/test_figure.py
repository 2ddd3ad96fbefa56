"""`transduce figure`, as a user meets it."""

import re

import pytest
from typer.testing import CliRunner

from tests.benchmark.datasets.miniatures import draw_picture
from transduce.cli.main import app
from transduce.errors import InvalidSetting, UnknownName
from transduce.methods import METHODS


def run(*arguments):
    return CliRunner().invoke(app, ["figure", *map(str, arguments)])


def test_the_papers_densities_are_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("dirichlet")
    assert found.stdout == "Wrote dirichlet.svg\n"
    text = (tmp_path / "dirichlet.svg").read_text()
    assert re.findall(r"α = \([^)]*\)", text) == ["α = (10, 5, 5)", "α = (0.975, 0.975, 3)"]


def test_other_densities(tmp_path):
    out = tmp_path / "mine.svg"
    assert run("dirichlet", "--alpha", "1,2,3", "--out", out).exit_code == 0
    assert "α = (1, 2, 3)" in out.read_text()
    for bad in ("1,2", "1,2,x", "1,2,0"):
        assert isinstance(run("dirichlet", "--alpha", bad, "--out", out).exception, InvalidSetting)


def test_the_matching_of_a_folder_of_ones_own(tmp_path):
    for label, name in enumerate(["red circle", "blue star", "green heart"]):
        for number in range(4):
            draw_picture(tmp_path / "mine" / name / f"{number}.jpg", 100 * label + number)
    out = tmp_path / "matching.svg"
    folder = ("--dataset", f"folder:{tmp_path / 'mine'}", "--data", tmp_path)
    found = run("matching", *folder, "--queries", 12, "--out", out)
    assert found.exit_code == 0, found.exception
    assert f"Wrote {out}" in found.stdout
    assert re.search(r"classes \([23] of 3\)", out.read_text())
    found = run("matching", *folder, "--out", out)
    assert "found 12 in its 3 largest; lower queries to 12" in str(found.exception)


@pytest.mark.parametrize("option", [("--method", "em-dirichlett"), ("--dataset", "petss")])
def test_unknown_names_are_refused(option, tmp_path):
    assert "em-dirichlet" in METHODS
    found = run("matching", *option, "--data", tmp_path)
    assert isinstance(found.exception, UnknownName)
