"""`transduce`: the list of verbs, and how an error becomes a message and an exit code."""

import os
import sys

import typer

from transduce.cli.bench import bench_command
from transduce.cli.console import BAD_INPUT, STOPPED, complain, note
from transduce.cli.data import data
from transduce.cli.demo import demo_command
from transduce.cli.doctor import doctor_command
from transduce.cli.embed import embed_command
from transduce.cli.export import export_command
from transduce.cli.export_onnx import export_onnx_command
from transduce.cli.features import features
from transduce.cli.label import label_command
from transduce.cli.list import list_command
from transduce.cli.refusals import refusal
from transduce.cli.review import review_command
from transduce.errors import TransduceError

TRACEBACKS = "TRANSDUCE_TRACEBACK"  # set: show where the operating system refused

app = typer.Typer(
    name="transduce",
    help="Label a batch of images jointly with a CLIP-like encoder.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: twice as much fits on a page, and it can be checked
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("label")(label_command)
app.command("review")(review_command)
app.command("export")(export_command)
app.command("demo")(demo_command)
app.command("bench")(bench_command)
app.add_typer(data, name="data")
app.command("embed")(embed_command)
app.add_typer(features, name="features")
app.command("export-onnx")(export_onnx_command)
app.command("list")(list_command)
app.command("doctor")(doctor_command)


def main() -> None:
    """Exit 0: fine. 1: finished, with problems. 2: bad input, nothing done. 130: stopped."""
    try:
        app(prog_name="transduce")
    except TransduceError as error:
        complain(str(error))
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        sys.exit(0)
    except (OSError, MemoryError, RecursionError) as error:
        if os.environ.get(TRACEBACKS):
            raise
        complain(refusal(error))
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        note("Stopped.")
        sys.exit(STOPPED)
