"""What is in the wheel: the command, the drawn world, the pages; and nothing else."""

import email
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this repository; its parts are read, nothing is installed."""
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    [path] = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_every_module_and_data_file_of_the_package_is_in_it(wheel):
    inside = {name for name in wheel.namelist() if name.startswith("transduce/")}
    source = ROOT / "src"
    files = [path for path in (source / "transduce").rglob("*") if path.is_file()]
    ours = {
        path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts
    }
    assert inside == ours
    assert "transduce/encoders/embedded/image.onnx" in inside
    assert "transduce/py.typed" in inside
    others = {name.split("/")[0] for name in wheel.namelist()} - {"transduce"}
    assert all(name.endswith(".dist-info") for name in others)


def test_the_command_and_what_it_needs(wheel):
    [info] = {name.split("/")[0] for name in wheel.namelist() if ".dist-info" in name}
    entry_points = wheel.read(f"{info}/entry_points.txt").decode()
    assert "transduce = transduce.__main__:main" in entry_points
    about = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    needed = {line.split(";")[0].split(">")[0].strip() for line in about.get_all("Requires-Dist")
              if "extra ==" not in line}  # fmt: skip
    assert {"onnxruntime", "tokenizers", "fastapi", "uvicorn"} <= needed
    assert not {"numba", "torch", "transformers", "huggingface-hub"} & needed
    assert about["Requires-Python"] == ">=3.11"
    assert about.get_payload().startswith("# transduce")


def test_the_wheel_is_small(wheel):
    assert sum(entry.compress_size for entry in wheel.infolist()) < 3e6
