"""`transduce figure`: the illustrations of the paper's appendix, from the library's own objects."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.console import say
from transduce.errors import InvalidSetting

figure = typer.Typer(
    help="Draw the paper's illustrations: Dirichlet densities, the matching of one task.",
    no_args_is_help=True,
)

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="An .svg, .png or .pdf.  [default: NAME.svg]"),
]


@figure.command("dirichlet")
def dirichlet(
    alpha: Annotated[
        list[str] | None,
        typer.Option(
            "--alpha",
            metavar="A,B,C",
            help="Three parameters; may be repeated.  [default: the paper's two]",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Draw Dirichlet densities on the simplex of R^3."""
    from transduce.benchmark.report.illustrations import PAPER_ALPHAS, dirichlet_figure, save

    alphas = [_numbers(text) for text in alpha] if alpha else PAPER_ALPHAS
    path = out or Path("dirichlet.svg")
    save(dirichlet_figure(alphas), path)
    say(f"Wrote {path}")


@figure.command("matching")
def matching(
    dataset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="drawn:N, reference:NAME, folder:PATH, or a dataset of `transduce data status`.",
        ),
    ] = "drawn:24",
    encoder: Annotated[str, typer.Option(metavar="ID", help="Of the pictures.")] = "default",
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TRANSDUCE_DATA", help="Where the datasets lie."),
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME")] = "hard-em-dirichlet",
    queries: Annotated[int, typer.Option(min=1, metavar="N", help="Pictures of the task.")] = 75,
    episode: Annotated[int, typer.Option(min=0, metavar="N", help="Which task.")] = 0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the tasks.")] = 0,
    out: Out = None,
) -> None:
    """Draw which class each cluster of a zero-shot task was matched with."""
    from transduce.benchmark.episodes import ZeroShotProtocol, sample
    from transduce.benchmark.report.illustrations import matching_figure, save
    from transduce.benchmark.sources import DataFolders, load_features
    from transduce.cli.console import note
    from transduce.methods import METHODS
    from transduce.methods.method import without_convergence_warnings

    chosen = METHODS[method]
    features = load_features(dataset, encoder, {"test"}, DataFolders(data), note)
    few, many = min(3, features.n_classes), min(10, features.n_classes)
    protocol = ZeroShotProtocol(queries=queries, fewest=few, most=many)
    split = "all" if "all" in features.splits else "test"  # no shots are drawn from the others
    drawn = sample(
        features, protocol, episode, seed=seed, space=chosen.spaces[0], query_split=split
    )
    with without_convergence_warnings():
        prediction = chosen().predict(drawn.task)
    path = out or Path("matching.svg")
    save(matching_figure(drawn.task, prediction, features.classes, drawn.labels), path)
    right = float((prediction.labels == drawn.labels).mean())
    say(f"Wrote {path}  task {episode} of {dataset}: {method} labels {right:.0%} right")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSetting(
            f"Expected numbers with commas between, such as 10,5,5, found {text!r}."
        ) from None
