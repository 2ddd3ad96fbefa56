"""The workflows and the Dockerfile: they name what exists here."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_of_the_makefile(path):
    jobs = yaml.safe_load(path.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = [line.split()[1:] for text in commands for line in text.splitlines()
              if line.startswith("make ")]  # fmt: skip
    assert called
    assert {target for targets in called for target in targets} <= TARGETS
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


def test_every_python_that_is_promised_is_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    start = "Programming Language :: Python :: 3."
    promised = [line[len(start) - 2 :] for line in project["classifiers"] if line.startswith(start)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised


def test_the_image_is_built_from_files_that_are_here_and_let_in():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY ") and "--from" not in line
              for word in line.split()[1:-1]]  # fmt: skip
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()
               if line.startswith("!")}  # fmt: skip
    assert copied
    assert set(copied) == allowed
    assert all((ROOT / name).exists() for name in copied)
    assert 'ENTRYPOINT ["transduce"]' in lines
