"""Options that more than one verb has, with their help."""

from enum import StrEnum
from typing import Annotated

import typer

from transduce.machine import network

MOST_SKIPPED = 0.05  # above this share the run counts as finished with problems
SOURCE_ARGUMENT = typer.Argument(
    metavar="SOURCE",
    help="A folder, a quoted glob, a list (.txt, or .csv and .parquet with a file_name "
    "column), a .tar, .parquet with images inside, or a URL such as s3://bucket/photos "
    "or hf://datasets/ORG/NAME.",
)
Device = Annotated[str, typer.Option(metavar="NAME", help="For encoders in torch: cpu, cuda, mps.")]
BatchSize = Annotated[int, typer.Option(min=1, metavar="N", help="Images per forward pass.")]


class ExecutorName(StrEnum):
    """Where the work is done."""

    local = "local"
    ray = "ray"


Executor = Annotated[ExecutorName, typer.Option(help="This machine, or a Ray cluster.")]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="With ray: of a running cluster. [default: a new one]",
    ),
]
Workers = Annotated[
    int, typer.Option(min=0, metavar="N", help="Decoding processes; 0 is one per core.")
]


def _refuse_network(context: typer.Context, offline: bool) -> bool:
    """With --offline, refuse every connection until the command ends."""
    if offline:
        context.with_resource(network.offline())
    return offline


Offline = Annotated[
    bool,
    typer.Option("--offline", callback=_refuse_network, help="Use no network: download nothing."),
]
SummaryAsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
