"""`transduce doctor`: what this machine has, and what to install for the rest."""

import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.console import WITH_PROBLEMS, say, say_json

# What a user may want to do, the library it needs, and the extra that installs it.
LIBRARIES = (
    ("clip, dinov2, onnx:", "onnxruntime", "onnx"),
    ("open_clip:", "open_clip_torch", "open-clip"),
    ("hf:", "transformers", "hf"),
    ("encoders in torch", "torch", "torch"),
    ("transduce review", "fastapi", "app"),
    ("Labels.to_pandas", "pandas", "notebook"),
    ("classes in .yaml", "PyYAML", "yaml"),
    ("the scikit-learn estimator", "scikit-learn", "sklearn"),
    ("s3:// and other URLs", "fsspec", "remote"),
    ("many machines", "ray", "ray"),
)


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check what works on this machine.

    Versions, extras, folders, and a small problem solved end to end.

    Exit 0: transduce works here. 1: it does not; the last line is the error.
    """
    import transduce
    from transduce.encoders import text_cache
    from transduce.simplex.threads import available_cores

    libraries = [_library(*row) for row in LIBRARIES]
    solved = _solve_something()
    cache = text_cache.folder()
    report: dict[str, Any] = {
        "transduce": transduce.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "cache": str(cache),
        "cache_writable": os.access(_existing(cache), os.W_OK),
        "libraries": libraries,
        "problem": solved,
    }
    if as_json:
        say_json(report)
    else:
        say(*_lines(report))
    if solved:
        raise typer.Exit(WITH_PROBLEMS)


def _lines(report: dict[str, Any]) -> list[str]:
    cache = report["cache"] + ("" if report["cache_writable"] else "  (cannot be written)")
    lines = [
        f"transduce {report['transduce']}, Python {report['python']}, {report['system']}, "
        f"{report['cores']} cores",
        f"cache     {cache}",
    ]
    for entry in report["libraries"]:
        state = entry["version"] or f'pip install "transduce[{entry["extra"]}]"'
        lines.append(f"  {entry['for']:<28}{entry['library']:<16}{state}")
    lines.append(
        f"Not working: {report['problem']}" if report["problem"] else "Solved a problem: ok"
    )
    return lines


def _library(purpose: str, library: str, extra: str) -> dict[str, str]:
    """Return a library's version without importing it, which may take seconds; "" if missing."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version(library)
    except PackageNotFoundError:
        installed = ""
    return {"for": purpose, "library": library, "extra": extra, "version": installed}


def _solve_something() -> str:
    """Solve a tiny task; return what goes wrong, or ""."""
    import numpy as np

    try:
        from transduce.methods.em_dirichlet import EMDirichlet
        from transduce.task import Task

        rows = np.random.default_rng(0).dirichlet([1.0, 2.0, 3.0], 30)
        EMDirichlet(classes_present="all", max_iter=1000).predict(Task(query=rows, zero_shot=rows))
    except Exception as error:  # whatever it is, it is what the user must read
        return f"{type(error).__name__}: {error}"
    return ""


def _existing(path: Path) -> Path:
    """Return the nearest folder above that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
