"""The illustrations of the paper: what is drawn is what the library computed."""

import re

import numpy as np
import pytest

from benchmarks.figures import (
    FAVORITE,
    MATCHED,
    PAPER_ALPHAS,
    _grid,
    dirichlet_figure,
    main,
    matching_figure,
    save_figure,
)
from tests.benchmark.small_features import small_features
from transduce.benchmark.synthetic.simulated import simulate
from transduce.errors import InvalidSetting, InvalidTask, MissingExtra, UnknownName
from transduce.methods import METHODS
from transduce.methods.matching import cluster_votes
from transduce.simplex.dirichlet import log_density

NAMES = [f"class {label}" for label in range(30)]


@pytest.fixture(scope="module")
def solved():
    batch = simulate(n_classes=30, n_queries=60, classes_present=6, seed=2)
    return batch, METHODS["hard-k-means"]().predict(batch.task)


@pytest.mark.parametrize("alpha", PAPER_ALPHAS)
def test_the_grid_covers_the_simplex(alpha):
    points, triangles = _grid(120)
    assert points.min() > 0
    np.testing.assert_allclose(points.sum(1), 1.0)
    assert triangles.min() == 0
    assert triangles.max() == len(points) - 1
    # The density integrates to one over the simplex, whose area in (z_1, z_2) is a half.
    density = np.exp(log_density(np.log(points), np.array([alpha]))[:, 0])
    assert 0.5 * density.mean() == pytest.approx(1.0, abs=0.02)


def test_a_panel_for_each_density(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.figures.RESOLUTION", 20)
    figure = dirichlet_figure([*PAPER_ALPHAS, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (0.2, 0.2, 0.2)])
    titles = [panel.get_title() for panel in figure.axes if panel.get_title()]
    assert titles[0] == "α = (10, 5, 5)"
    assert len(titles) == 5
    save_figure(figure, tmp_path / "new" / "dirichlet.svg")
    text = (tmp_path / "new" / "dirichlet.svg").read_text()
    assert "α = (0.975, 0.975, 3)" in text


def test_the_same_figure_is_the_same_file(tmp_path, solved):
    batch, prediction = solved
    for name in ("one.svg", "two.svg"):
        save_figure(matching_figure(batch.task, prediction, NAMES), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_every_cluster_has_one_edge_to_its_class(solved):
    batch, prediction = solved
    (panel,) = matching_figure(batch.task, prediction, NAMES, batch.labels).axes
    name_at = {text.get_position(): text.get_text() for text in panel.texts}
    edges = [line for line in panel.lines if line.get_color() == MATCHED]
    drawn = {name_at[(1.03, line.get_ydata()[1])] for line in edges}
    found, votes = cluster_votes(prediction.clusters, batch.task)
    matched = prediction.class_of_cluster[found]
    assert len(edges) == len(found) > 5
    assert drawn == {NAMES[label] for label in matched}
    taken = [line for line in panel.lines if line.get_color() == FAVORITE]
    assert len(taken) == (votes.argmax(1) != matched).sum() > 0


def test_clusters_are_told_by_size_and_truth(solved):
    batch, prediction = solved
    (panel,) = matching_figure(batch.task, prediction, NAMES, batch.labels).axes
    told = [text.get_text() for text in panel.texts if text.get_position()[0] == -0.03]
    counts = np.unique(prediction.clusters, return_counts=True)[1]
    assert [int(text.split()[0]) for text in told] == counts.tolist()
    assert all("of class" in text for text in told)
    (panel,) = matching_figure(batch.task, prediction, NAMES).axes
    told = [text.get_text() for text in panel.texts if text.get_position()[0] == -0.03]
    assert set(told) <= {f"{count} image{'s' if count > 1 else ''}" for count in counts}


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch, solved):
    batch, prediction = solved
    with pytest.raises(InvalidTask, match="a method that clusters"):
        matching_figure(batch.task, METHODS["zero-shot"]().predict(batch.task), NAMES)
    monkeypatch.setattr("benchmarks.figures.MOST_CLUSTERS", 2)
    with pytest.raises(InvalidSetting, match="at most 2 clusters"):
        matching_figure(batch.task, prediction, NAMES)
    for bad in ([], [(1.0, 2.0)], [(1.0, 2.0, -1.0)], [(1.0, 2.0, float("nan"))]):
        with pytest.raises(InvalidSetting, match="such as 10,5,5"):
            dirichlet_figure(bad)
    with pytest.raises(InvalidSetting, match=r"svg.* found .*figure.foo"):
        save_figure(dirichlet_figure(PAPER_ALPHAS), tmp_path / "figure.foo")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"transduce\[report\]"):
        dirichlet_figure(PAPER_ALPHAS)


def test_the_papers_densities_are_the_default(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmarks.figures.RESOLUTION", 20)
    main(["dirichlet"])
    assert capsys.readouterr().out == "Wrote dirichlet.svg\n"
    text = (tmp_path / "dirichlet.svg").read_text()
    assert re.findall(r"α = \([^)]*\)", text) == ["α = (10, 5, 5)", "α = (0.975, 0.975, 3)"]
    main(["dirichlet", "--alpha", "1,2,3"])
    assert "α = (1, 2, 3)" in (tmp_path / "dirichlet.svg").read_text()
    for bad in ("1,2", "1,2,x", "1,2,0"):
        with pytest.raises(InvalidSetting):
            main(["dirichlet", "--alpha", bad])


def test_the_matching_of_a_task(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.figures.load_features", lambda *_: small_features())
    out = tmp_path / "matching.svg"
    main(["matching", "--queries", "12", "--out", str(out)])
    assert capsys.readouterr().out.startswith(f"Wrote {out}")
    assert re.search(r"classes \([2-6] of 6\)", out.read_text())
    with pytest.raises(InvalidSetting, match="found 120 in its 6 largest; lower queries to 120"):
        main(["matching", "--queries", "121", "--out", str(out)])
    with pytest.raises(UnknownName, match="did you mean 'em-dirichlet'"):
        main(["matching", "--method", "em-dirichlett"])
