"""`report.html`: from a run directory to one file that needs nothing else."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from transduce.labeling.report import plots
from transduce.labeling.report.content import ReportContent, report_content
from transduce.labeling.run_directory import REPORT, RunDirectory
from transduce.machine.atomic import replace_text

PACKAGE = "transduce.labeling.report"


def write_report(run: RunDirectory) -> Path:
    """Write (or write again) the page of a run; returns its path."""
    path = run.folder / REPORT
    replace_text(path, render_report(report_content(run)))
    return path


def render_report(content: ReportContent) -> str:
    """Return the page as HTML."""
    style = asset(PACKAGE, "report.css") + asset(PACKAGE, "map.css")
    script = asset(PACKAGE, "report.js") + asset(PACKAGE, "map.js")
    return (
        environment(PACKAGE)
        .get_template("report.html")
        .render(
            view=content,
            style=style,
            script=script,
            share_bar=plots.share_bar,
            policy=security_policy(style, script, {"img-src": "data:"}),
        )
    )


@cache
def environment(package: str) -> jinja2.Environment:
    """Return a template loader that escapes everything but `Markup`, our own plots and files."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["count"] = lambda value: f"{value:,}"
    made.filters["percent"] = lambda value: f"{value:.1%}"
    made.filters["score"] = lambda value: f"{value:.2f}"
    return made


@cache
def asset(package: str, name: str) -> Markup:
    """Return a style sheet or script of a page."""
    return Markup((resources.files(package) / "templates" / name).read_text(encoding="utf-8"))


def security_policy(style: str, script: str, more: Mapping[str, str]) -> str:
    """Return a content security policy: this style, this script, and nothing from elsewhere."""
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        **more,
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
