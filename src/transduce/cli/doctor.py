"""`transduce doctor`: what works on this machine, tried out, and how to repair what does not."""

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.console import WITH_PROBLEMS, note, say, say_json
from transduce.cli.self_checks import LIBRARIES, Library

SECONDS = 180.0  # for one check: a first import of torch from a slow disk takes its time
REPAIR = "pip install --force-reinstall"


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check what works on this machine, by trying it.

    Each library is imported, each encoder that is here embeds an image and a word, and a small
    problem is solved. Nothing is downloaded.

    Exit 0: what is installed works. 1: something does not; its line says how to mend it.
    """
    import transduce
    from transduce.encoders.hub_cache import cache_folder
    from transduce.encoders.prompts import text_cache_folder
    from transduce.simplex.threads import available_cores

    if not as_json:
        note("Trying everything that is installed; this takes some seconds ...")
    with ThreadPoolExecutor(max_workers=2) as pool:
        libraries = list(pool.map(_library, LIBRARIES))
        encoders = list(pool.map(_encoder, _encoder_checks(libraries)))
        solved = _check("solve")
    report: dict[str, Any] = {
        "transduce": transduce.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "caches": [_cache(text_cache_folder()), _cache(cache_folder())],
        "libraries": libraries,
        "encoders": encoders,
        "problem": "" if solved["ok"] else solved["detail"],
    }
    if as_json:
        say_json(report)
    else:
        say(*_lines(report))
    if _failures(report):
        raise typer.Exit(WITH_PROBLEMS)


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [
        f"transduce {report['transduce']}, Python {report['python']}, {report['system']}, "
        f"{report['cores']} cores"
    ]
    for name, cache in zip(("class names", "models"), report["caches"], strict=True):
        state = "" if cache["writable"] else "  (cannot be written)"
        lines.append(f"  cache of {name}: {cache['folder']}{state}")
    lines.append("Libraries")
    for entry in report["libraries"]:
        state = f"FAILS: {entry['problem']}" if entry["problem"] else entry["version"]
        state = state or f"not installed: {entry['mend']}"
        lines.append(f"  {entry['for']:<28}{entry['library']:<16}{state}")
        if entry["problem"]:
            lines.append(f"    mend it: {entry['mend']}")
    lines.append("Encoders")
    for entry in report["encoders"]:
        state = f"FAILS: {entry['problem']}" if entry["problem"] else entry["state"]
        lines.append(f"  {entry['name']:<12}{state}")
        if entry["problem"]:
            lines.append(f"    mend it: {entry['mend']}")
    lines.append(f"Solving: {'FAILS: ' + report['problem'] if report['problem'] else 'ok'}")
    failures = _failures(report)
    lines.append(
        f"Not working: {', '.join(failures)}" if failures else "Everything that is here works."
    )
    return lines


def _failures(report: dict[str, Any]) -> list[str]:
    """Return the names of what is here and does not work."""
    failed = [entry["library"] for entry in report["libraries"] if entry["problem"]]
    failed += [entry["name"] for entry in report["encoders"] if entry["problem"]]
    return failed + (["solving"] if report["problem"] else [])


def _library(library: Library) -> dict[str, str]:
    """Return a library's version and what is wrong with it, both "" if it is an extra not here."""
    from importlib.metadata import PackageNotFoundError, version

    missing = f'pip install "transduce[{library.extra}]"' if library.extra else ""
    entry = {"for": library.purpose, "library": library.distribution, "extra": library.extra}
    try:
        entry |= {"version": version(library.distribution), "problem": "", "mend": missing}
    except PackageNotFoundError:
        repair = missing or "pip install --upgrade transduce"
        problem = "" if library.extra else "it comes with transduce, and is not here"
        return entry | {"version": "", "problem": problem, "mend": repair}
    answer = _check(f"import={library.module}")
    if not answer["ok"]:
        repair = f"{REPAIR} {library.distribution}"
        entry |= {"problem": answer["detail"], "mend": _mend(answer["detail"], repair)}
    return entry


def _encoder_checks(libraries: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return what to try of each encoder: its name, and the check, "" if it is not here."""
    from transduce.encoders import ENCODERS
    from transduce.encoders.hub import cached_hub_model

    installed = {entry["library"] for entry in libraries if entry["version"]}
    checks = [("shapes", "encoder=shapes")]
    for name, entry in ENCODERS.items():
        if entry.hub is not None:
            checks.append((name, f"encoder={name}" if cached_hub_model(entry.hub) else ""))
    checks += [("open_clip:", "open_clip")] if "open_clip_torch" in installed else []
    checks += [("hf:", "hf")] if {"transformers", "torch"} <= installed else []
    return checks


def _encoder(check: tuple[str, str]) -> dict[str, str]:
    name, what = check
    if not what:
        state = f"not downloaded: transduce download {name}"
        return {"name": name, "state": state, "problem": "", "mend": ""}
    answer = _check(what)
    if answer["ok"]:
        small = " of a very small model" if what in ("open_clip", "hf") else ""
        return {"name": name, "state": f"ok, {answer['detail']}{small}", "problem": "", "mend": ""}
    extras = {"open_clip": '"transduce[open-clip]"', "hf": '"transduce[hf]"'}
    repair = f"{REPAIR} {extras.get(what, 'onnxruntime')}"
    if "damaged or was changed" in answer["detail"]:
        repair = f"delete that file, then: transduce download {name}"
    mend = _mend(answer["detail"], repair)
    return {"name": name, "state": "", "problem": answer["detail"], "mend": mend}


def _mend(problem: str, repair: str) -> str:
    from transduce.encoders.diagnostics import torch_and_torchvision

    return f"{REPAIR} {torch_and_torchvision()}" if "torchvision" in problem else repair


def _check(what: str) -> dict[str, Any]:
    """Return the answer of `transduce.cli.self_checks`, or how its process ended."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSDUCE_OFFLINE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "transduce.cli.self_checks", what],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "detail": f"no answer within {SECONDS:.0f} s"}
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        why = f": {lines[-1]}" if lines else ""
        return {"ok": False, "detail": f"its process ended with code {done.returncode}{why}"}


def _cache(folder: Path) -> dict[str, Any]:
    return {"folder": str(folder), "writable": os.access(_existing(folder), os.W_OK)}


def _existing(path: Path) -> Path:
    """Return the nearest folder above that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
