"""`transduce data`, as a user meets it."""

import json

import pytest
from typer.testing import CliRunner

from tests.benchmark.datasets.conftest import site  # noqa: F401 - a fixture
from tests.benchmark.datasets.miniatures import SPLIT_FILE, draw_coop
from tests.benchmark.datasets.test_prepare import tiny  # noqa: F401 - a fixture
from transduce.cli.main import app
from transduce.errors import MissingData, UnknownName


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


@pytest.fixture
def cards(monkeypatch, tiny):  # noqa: F811
    for module in ("card", "verify"):
        monkeypatch.setattr(f"transduce.benchmark.datasets.{module}.CARDS", {"tiny": tiny})


def test_status_lists_all_at_80_columns(tmp_path):
    (tmp_path / "fgvc_aircraft" / "images").mkdir(parents=True)
    found = run("status", "--data", tmp_path)
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert len(lines) == 13
    assert all(len(line) <= 80 for line in lines[1:-1])
    assert lines[4].split(maxsplit=5) == [
        "fgvc_aircraft", "100", "3,334", "3,333", "3,333", "no variants.txt (+3)",
    ]  # fmt: skip
    assert lines[7].split() == ["imagenet", "1,000", "1,281,167", "-", "50,000", "absent"]
    assert lines[-1].startswith("0 of 11 are here")


def test_status_as_json(tmp_path):
    told = json.loads(run("status", "--data", tmp_path, "--json").stdout)
    by_name = {entry["name"]: entry for entry in told["datasets"]}
    assert by_name["dtd"]["state"] == "absent"
    assert by_name["dtd"]["counts"] == {"train": 2820, "val": 1128, "test": 1692}
    assert by_name["imagenet"]["license"].startswith("non-commercial")


def test_the_data_folder_may_be_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    assert json.loads(run("status", "--json").stdout)["data"] == str(tmp_path)


def test_prepare_then_verify(cards, tmp_path):
    data = tmp_path / "data"
    found = run("prepare", "tiny", "--data", data)
    assert found.exit_code == 0, found.output
    assert f"made  {data}/tiny/images" in found.stdout
    assert found.stdout.splitlines()[-1] == f"Next: transduce data verify tiny --data {data}"
    again = run("prepare", "tiny", "--data", data)
    assert again.stdout.count("have  ") == 2
    assert "1 of 1 are here" in run("status", "--data", data).stdout
    found = run("verify", "tiny", "--data", data)
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "tiny: 3 classes; 6 train, 3 val, 6 test",
        "Everything is in order.",
        f"Next: transduce embed {data}/tiny/images --out STORE",
    ]


def test_a_dry_run_fetches_nothing(cards, site, tmp_path):  # noqa: F811
    found = run("prepare", "tiny", "--data", tmp_path / "data", "--dry-run")
    assert found.exit_code == 1
    assert site.asked == []
    assert not (tmp_path / "data").exists()
    assert f"save as   {tmp_path}/data/downloads/tiny/tiny.tgz" in found.stdout


def test_a_failed_download_says_what_to_do_instead(cards, site, tmp_path):  # noqa: F811
    del site.files["split.json"]
    found = run("prepare", "tiny", "--data", tmp_path / "data")
    assert found.exit_code == 1
    assert "made  " in found.stdout  # the other file
    assert "HTTP Error 404" in found.stderr
    assert "or        https://example.org/split" in found.stdout


@pytest.mark.parametrize("name", ["imagenet", "stanford_cars", "sun397", "ucf101"])
def test_what_cannot_be_downloaded_is_explained(name, tmp_path):
    found = run("prepare", name, "--data", tmp_path, "--dry-run")
    assert found.exit_code == 1
    assert "becomes" in found.stdout
    assert "Then: transduce data prepare" in found.stdout
    if name in ("stanford_cars", "sun397"):
        assert "(torchvision #" in found.stdout
        assert ": dead" in found.stdout


def test_verify_tells_problems_and_exits_1(cards, tmp_path):
    folder = draw_coop(tmp_path)
    (folder / "images" / "red fox" / "val_0.jpg").unlink()
    found = run("verify", "tiny", "--data", tmp_path)
    assert found.exit_code == 1
    assert "val: 1 images missing, such as red fox/val_0.jpg" in found.stdout
    (folder / SPLIT_FILE).unlink()
    told = json.loads(run("verify", "tiny", "--data", tmp_path, "--json").stdout)
    assert told["problems"] == [f"Expected {folder / SPLIT_FILE}, found no such file."]


def test_bad_names_are_refused(tmp_path):
    assert isinstance(run("verify", "pets", "--data", tmp_path).exception, UnknownName)
    assert isinstance(run("prepare", "food", "--data", tmp_path).exception, UnknownName)
    assert isinstance(run("verify", f"folder:{tmp_path}/no").exception, MissingData)
