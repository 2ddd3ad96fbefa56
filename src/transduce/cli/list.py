"""`transduce list`: what can be asked for by name."""

import enum
from typing import Annotated, Any

import typer

from transduce.cli.console import say, say_json


class Kind(enum.StrEnum):
    """What can be listed."""

    methods = "methods"
    encoders = "encoders"
    datasets = "datasets"


def list_command(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List methods, encoders or datasets by name."""
    rows = {Kind.methods: _methods, Kind.encoders: _encoders, Kind.datasets: _datasets}[kind]()
    if as_json:
        say_json({str(kind): rows})
        return
    width = max(len(row["name"]) for row in rows)
    say(*(f"{row['name']:<{width}}  {row['about']}" for row in rows))


def _methods() -> list[dict[str, Any]]:
    from transduce.methods import METHODS

    rows = [{"name": "auto", "about": "another name of anchored, the default"}]
    for name, method in METHODS.items():
        shots = {"unused": "no shots", "optional": "shots optional", "needed": "needs shots"}
        batch = "one by one" if method.inductive else "jointly"
        rows.append({"name": name, "about": f"{batch}, {shots[method.support]}"})
    unavailable = METHODS.unavailable.items()
    return rows + [{"name": name, "about": f"unavailable: {why}"} for name, why in unavailable]


def _encoders() -> list[dict[str, Any]]:
    from transduce.encoders import ENCODERS

    return [{"name": entry.example, "about": entry.about} for entry in ENCODERS.values()]


def _datasets() -> list[dict[str, Any]]:
    from transduce.benchmark.datasets.card import CARDS

    return [{"name": name, "about": f'"{card.template}"'} for name, card in CARDS.items()]
