import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from transduce.cli.export_onnx import export_onnx_command
from transduce.encoders import export
from transduce.encoders.torch_towers import TorchEncoder
from transduce.errors import InvalidSetting, UnknownName

app = typer.Typer()
app.command()(export_onnx_command)


@pytest.fixture
def run(monkeypatch):
    """The command with the model and the slow export replaced; tests/encoders has the real ones."""

    def write(encoder: TorchEncoder, folder: Path, *, replace: bool) -> export.Exported:
        folder.mkdir()
        (folder / "image.onnx").write_bytes(b"")
        return export.Exported(folder, "onnx:open_clip:RN50/openai", 1e-7, 2.5e-7, 351.24)

    towers = TorchEncoder("open_clip:RN50/openai", *[None] * 6)
    monkeypatch.setattr(
        "transduce.encoders.open_clip.load_open_clip", lambda name, settings: towers
    )
    monkeypatch.setattr(export, "export_onnx", write)

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


def test_says_what_was_written_and_what_to_do_next(run, tmp_path):
    out = tmp_path / "towers"
    result = run("open_clip:RN50/openai", out)
    assert result.exit_code == 0
    assert f"Wrote {out}/   image.onnx   (351.2 MB)" in result.stdout
    assert "1.0e-07 (images) and 2.5e-07 (texts)" in result.stdout
    assert max(map(len, result.stdout.replace(str(out), "towers").splitlines())) <= 90
    assert f"--encoder onnx:{out}" in result.stdout
    assert "Loading open_clip:RN50/openai" in result.stderr
    assert "Loading" not in result.stdout


def test_json(run, tmp_path):
    result = run("open_clip:RN50/openai", tmp_path / "towers", "--json")
    assert json.loads(result.stdout)["identity"] == "onnx:open_clip:RN50/openai"


def test_the_verb_is_there_and_a_typo_ends_with_code_2(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from transduce.cli.main import run_command_line; run_command_line()",
        "export-onnx",
    ]
    result = subprocess.run(
        [*command, "openclip:RN50", str(tmp_path / "new")], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "Error: Expected an encoder" in result.stderr
    assert "did you mean 'open_clip'" in result.stderr


def test_bad_input_is_refused_before_any_work(run, tmp_path):
    assert isinstance(run("RN50", tmp_path).exception, InvalidSetting)
    assert isinstance(run("rn50:x", tmp_path / "new").exception, UnknownName)
    identity = {"encoder": "x", "weights": "y", "preprocessing": "", "dimension": 4}
    (tmp_path / "meta.json").write_text(json.dumps({"identity": identity}))
    (tmp_path / "texts.npz").write_bytes(b"")
    result = run(f"precomputed:{tmp_path}", tmp_path / "new")
    assert "which has no model in torch" in str(result.exception)
    assert not (tmp_path / "new").exists()
