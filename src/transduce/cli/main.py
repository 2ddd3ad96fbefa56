"""`transduce`: the list of verbs, and how an error becomes a message and an exit code."""

import os
import sys
from typing import Annotated

import typer

import transduce
from transduce.cli.bench import bench_command
from transduce.cli.certify import certify_command
from transduce.cli.console import BAD_INPUT, STOPPED, complain, note, say
from transduce.cli.data import data
from transduce.cli.demo import demo_command
from transduce.cli.doctor import doctor_command
from transduce.cli.download import download_command
from transduce.cli.embed import embed_command
from transduce.cli.export import export_command
from transduce.cli.export_onnx import export_onnx_command
from transduce.cli.features import features
from transduce.cli.help import GroupedVerbs, LabelHelp, examples
from transduce.cli.label import label_command
from transduce.cli.list import list_command
from transduce.cli.refusals import refusal
from transduce.cli.review import review_command
from transduce.errors import TransduceError

TRACEBACKS = "TRANSDUCE_TRACEBACK"  # set: show where the operating system refused

LABEL_EXAMPLES = examples(
    "transduce label photos/ --classes cat,dog,fox",
    "transduce label photos/ --classes-file classes.txt --truth folders",
    "transduce label --features clip.npz --classes-file classes.txt",
    "transduce label photos/ --classes cat,dog --allow-unknown --out labeled",
)

app = typer.Typer(
    name="transduce",
    cls=GroupedVerbs,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: twice as much fits on a page, and it can be checked
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The verbs under their headings, in the order in which they are met.
LABEL, PREPARE, RESEARCH, ABOUT = "Label images", "Prepare", "Research", "This program"
app.command("label", cls=LabelHelp, epilog=LABEL_EXAMPLES, rich_help_panel=LABEL)(label_command)
app.command("review", rich_help_panel=LABEL)(review_command)
app.command("certify", rich_help_panel=LABEL)(certify_command)
app.command("export", rich_help_panel=LABEL)(export_command)
app.command("demo", rich_help_panel=LABEL)(demo_command)
app.command("download", rich_help_panel=PREPARE)(download_command)
app.command("embed", rich_help_panel=PREPARE)(embed_command)
app.add_typer(features, name="features", rich_help_panel=PREPARE)
app.command("export-onnx", rich_help_panel=PREPARE)(export_onnx_command)
app.command("bench", rich_help_panel=RESEARCH)(bench_command)
app.add_typer(data, name="data", rich_help_panel=RESEARCH)
app.command("list", rich_help_panel=ABOUT)(list_command)
app.command("doctor", rich_help_panel=ABOUT)(doctor_command)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"transduce {transduce.__version__}")
        raise typer.Exit


@app.callback()
def transduce_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Label a batch of images jointly with a CLIP-like encoder.

    The first steps: transduce demo, then transduce label PHOTOS --classes cat,dog,fox
    """


def run_command_line() -> None:
    """Run the verb that was typed.

    Exit 0: fine. 1: finished, with problems. 2: bad input, nothing done. 130: stopped.
    """
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
