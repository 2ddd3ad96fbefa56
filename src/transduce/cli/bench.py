"""`transduce bench`: run a suite by its name, write its tables and its page."""

import enum
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.console import (
    BAD_INPUT,
    STOPPED,
    WITH_PROBLEMS,
    complain,
    folder_name,
    note,
    say,
    say_json,
)
from transduce.cli.progress import progress_bar
from transduce.errors import InvalidSetting, MissingData

if TYPE_CHECKING:
    from transduce.benchmark.execute import SuiteOutcome
    from transduce.benchmark.labeled_features import LabeledFeatures
    from transduce.benchmark.report.suite_report import SuiteReport
    from transduce.benchmark.results import SuiteShard
    from transduce.benchmark.sources import DataFolders
    from transduce.benchmark.suite import Suite

REPORTS = ("tables.md", "tables.tex", "tables.csv", "page.html")


class BenchExecutorName(enum.StrEnum):
    """Values of --executor."""

    serial = "serial"
    joblib = "joblib"
    ray = "ray"


def bench_command(
    suite_name: Annotated[
        str | None, typer.Argument(metavar="SUITE", help="A name from --list, or a .toml file.")
    ] = None,
    list_suites: Annotated[bool, typer.Option("--list", help="List the suites and stop.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the datasets or features are.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where embeddings are kept; DATA/features if not given."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="For results and reports; out/bench/SUITE if not given."
        ),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Tasks a cell, if not the suite's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of the tasks, if not the suite's.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this method; may be repeated.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Only this column; may be repeated.")
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This dataset instead of the suite's; may be repeated."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(metavar="ID", help="This encoder instead of the suite's.")
    ] = None,
    executor: Annotated[
        BenchExecutorName,
        typer.Option(help="This process, processes of this machine, or a Ray cluster."),
    ] = BenchExecutorName.joblib,
    workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Processes; 0 is one per core.")
    ] = 0,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of the Ray cluster; else a local one.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Only share I of N, such as 3/16.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Compute again what is there already.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Compute nothing; report what is there.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the tables.")] = False,
) -> None:
    """Run a suite of benchmarks; repeat the command to go on where it stopped.

    Each run is kept as one JSON file and never computed twice. Shards write parts only: copy their
    work folders into one --out, and the command without --shard puts them together.

    Exit 0: done. 1: done, but some cells could not be computed. 2: bad input. 130: stopped.
    """
    if list_suites or suite_name is None:
        if suite_name is None and not list_suites:
            raise InvalidSetting("Expected the name of a suite, found none; see --list.")
        say(*_listing())
        return
    from transduce.benchmark.results import SuiteShard
    from transduce.benchmark.sources import DataFolders

    share = SuiteShard() if shard is None else SuiteShard.parse(shard)
    suite = _suite(suite_name, tasks, seed, method or [], column or [], dataset or [], encoder)
    folder = out or Path("out") / "bench" / suite.name
    if report_only:
        from transduce.benchmark.execute import stored_results
        from transduce.benchmark.plan import plan_suite

        outcome = stored_results(plan_suite(suite), folder)
        if not outcome.results:
            raise MissingData(
                f"Expected runs of the suite {suite.name} in {folder}, found none; compute them: "
                f"transduce bench {suite_name}"
            )
        _report(suite, folder, outcome, as_json=as_json, quiet=quiet)
        return
    outcome = _execute(
        suite,
        folder,
        DataFolders(data, features),
        share,
        executor=executor.value,
        workers=workers,
        address=address,
        fresh=fresh,
        quiet=quiet,
    )
    if not share.whole:
        _say_shard(suite, folder, outcome, share, as_json=as_json)
        return
    if outcome.results or not outcome.reasons:  # an empty page would help nobody
        _report(suite, folder, outcome, as_json=as_json, quiet=quiet)
    if outcome.reasons:
        for reason in sorted(set(outcome.reasons.values())):
            note(f"Left out: {reason}")
        raise typer.Exit(WITH_PROBLEMS if outcome.results else BAD_INPUT)


def _listing() -> list[str]:
    from transduce.benchmark.suite_files import load_suite, suite_names

    names = suite_names()
    width = max(map(len, names)) + 2
    return [f"{name:<{width}}{load_suite(name).title}" for name in names]


def _suite(
    name: str,
    tasks: int | None,
    seed: int | None,
    methods: list[str],
    columns: list[str],
    datasets: list[str],
    encoder: str | None,
) -> "Suite":
    from transduce.benchmark.suite_files import load_suite

    suite = load_suite(name).narrowed(methods=methods, columns=columns)
    if datasets or encoder is not None:
        suite = suite.on_datasets(datasets, encoder)
    suite = suite if tasks is None else suite.with_tasks(tasks)
    return replace(suite, seed=suite.seed if seed is None else seed)


def _execute(
    suite: "Suite",
    folder: Path,
    folders: "DataFolders",
    shard: "SuiteShard",
    *,
    executor: str,
    workers: int,
    address: str | None,
    fresh: bool,
    quiet: bool,
) -> "SuiteOutcome":
    from transduce.benchmark.execute import execute_suite
    from transduce.benchmark.executors import make_executor
    from transduce.benchmark.plan import plan_suite
    from transduce.benchmark.sources import load_features

    plan = plan_suite(suite)
    tasks = sum(run.tasks for run in plan.runs)
    tell: Callable[[str], None] = (lambda line: None) if quiet else note

    def load(dataset: str, encoder: str, splits: set[str]) -> "LabeledFeatures":
        return load_features(dataset, encoder, splits, folders, tell)

    tell(f"{suite.title}: {len(plan.runs):,} runs, {tasks:,} tasks")
    made = make_executor(executor, workers=workers, address=address)
    try:
        with progress_bar("Solving", tasks, quiet=quiet, of="tasks") as advance:
            return execute_suite(
                plan, folder, made, load, shard=shard, fresh=fresh, tell=tell, advance=advance
            )
    except KeyboardInterrupt:
        complain(f"Stopped; what is done is in {folder_name(folder)}. Go on with: {_command()}")
        raise typer.Exit(STOPPED) from None
    finally:
        made.close()


def _report(
    suite: "Suite", folder: Path, outcome: "SuiteOutcome", *, as_json: bool, quiet: bool
) -> None:
    from transduce.benchmark.report import tables
    from transduce.benchmark.report.page import suite_page
    from transduce.benchmark.report.regimes import summary_csv
    from transduce.benchmark.report.suite_report import report_suite
    from transduce.machine.atomic import replace_text

    report = report_suite(suite, outcome, _command())
    forms = (tables.markdown, tables.latex, tables.as_csv, suite_page)
    folder.mkdir(parents=True, exist_ok=True)
    for name, form in zip(REPORTS, forms, strict=True):
        replace_text(folder / name, form(report))
    if suite.summary:
        replace_text(folder / "summary.csv", summary_csv(report))
    if as_json:
        say_json(_as_json(report))
        return
    say(tables.terminal(report, shutil.get_terminal_size((80, 24)).columns))
    if not quiet:
        say("", f"Wrote {folder_name(folder)}   {'  '.join(REPORTS)}  runs/")


def _as_json(report: "SuiteReport") -> dict[str, Any]:
    from transduce.benchmark.metrics import METRICS

    cells = [
        {
            "table": view.table.key,
            "label": row.row.full_label,
            "column": head,
            "value": cell.value,
            "interval": cell.interval,
            "paper": cell.paper,
            "best": cell.best,
            "seconds_per_task": None if cell.result is None else cell.result.seconds,
            "metrics": {} if cell.result is None else {n: cell.result.metric(n) for n in METRICS},
            "run": None if cell.result is None else cell.result.run.to_json(),
            "reason": cell.reason,
        }
        for view in report.tables
        for row in view.rows
        for head, cell in zip(view.heads, row.cells, strict=True)
    ]
    return {"suite": report.suite.name, "tasks": report.suite.tasks, "cells": cells}


def _say_shard(
    suite: "Suite", folder: Path, outcome: "SuiteOutcome", shard: "SuiteShard", *, as_json: bool
) -> None:
    where = folder / shard.folder
    if as_json:
        share = f"{shard.number}/{shard.total}"
        facts = {"suite": suite.name, "shard": share}
        say_json({**facts, "tasks": outcome.computed, "work": str(where)})
        return
    say(
        f"SuiteShard {shard.number} of {shard.total}: {outcome.computed:,} tasks now, "
        f"in {folder_name(where)}",
        "When all shards are there: the same command without --shard",
    )


def _command() -> str:
    """Return the command printed in the report, without --report-only."""
    words = [word for word in sys.argv[1:] if word != "--report-only"]
    return shlex.join(["transduce", *words])
