"""`transduce doctor`: what this machine has, and what to install for the rest."""

import os
import platform
import sys
from typing import Annotated, Any

import typer

from transduce.cli.console import WITH_PROBLEMS, say, say_json

# What a user may want to do, the library it needs, and the extra that installs it.
LIBRARIES = (
    ("the default encoder, onnx:", "onnxruntime", "onnx"),
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


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check what works on this machine.

    Versions, extras, folders, and a small problem solved end to end.

    Exit 0: transduce works here. 1: it does not, and what is wrong is said.
    """
    import transduce
    from transduce.encoders import text_cache

    libraries = [_library(*row) for row in LIBRARIES]
    solved = _solve_something()
    cache = text_cache.folder()
    found: dict[str, Any] = {
        "transduce": transduce.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "cache": str(cache),
        "cache_writable": os.access(_existing(cache), os.W_OK),
        "libraries": libraries,
        "problem": solved,
    }
    if as_json:
        say_json(found)
    else:
        say(*_lines(found))
    if solved:
        raise typer.Exit(WITH_PROBLEMS)


def _lines(found: dict[str, Any]) -> list[str]:
    cache = found["cache"] + ("" if found["cache_writable"] else "  (cannot be written)")
    lines = [
        f"transduce {found['transduce']}, Python {found['python']}, {found['system']}, "
        f"{found['cores']} cores",
        f"cache     {cache}",
    ]
    for entry in found["libraries"]:
        state = entry["version"] or f'pip install "transduce[{entry["extra"]}]"'
        lines.append(f"  {entry['for']:<28}{entry['library']:<16}{state}")
    lines.append(f"Not working: {found['problem']}" if found["problem"] else "Solved a problem: ok")
    return lines


def _library(purpose: str, library: str, extra: str) -> dict[str, str]:
    """Its version without importing it, which for some would take seconds; "" if missing."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(library)
    except PackageNotFoundError:
        found = ""
    return {"for": purpose, "library": library, "extra": extra, "version": found}


def _solve_something() -> str:
    """What goes wrong when a tiny task is solved; "" if nothing does."""
    import numpy as np

    try:
        from transduce.methods.em_dirichlet import EMDirichlet
        from transduce.task import Task

        rows = np.random.default_rng(0).dirichlet([1.0, 2.0, 3.0], 30)
        EMDirichlet(classes_present="all", max_iter=1000).predict(Task(query=rows, zero_shot=rows))
    except Exception as error:  # whatever it is, it is what the user must read
        return f"{type(error).__name__}: {error}"
    return ""


def _existing(path: "os.PathLike[str]") -> str:
    place = os.path.abspath(path)  # noqa: PTH100
    while not os.path.exists(place):  # noqa: PTH110
        place = os.path.dirname(place)  # noqa: PTH120
    return place
