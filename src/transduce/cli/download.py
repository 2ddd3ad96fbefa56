"""`transduce download`: get the weights of an encoder now, to work without a network later."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli import options
from transduce.cli.console import say, say_json
from transduce.cli.progress import download_bar

if TYPE_CHECKING:
    from transduce.encoders.hub import HubModel


def download_command(
    encoders: Annotated[
        list[str] | None, typer.Argument(metavar="[ENCODER]...", help="Such as clip or dinov2.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the models with a name, and which are here.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Download encoders, clip if none is named, and check those that are here.

    They go to the cache of huggingface_hub (HF_HOME). HF_ENDPOINT, HF_TOKEN and proxies hold.

    Exit 0: they are here and whole. 2: one cannot be had, or is damaged.
    """
    rows = _models() if listed else [_fetch(name, quiet=quiet) for name in encoders or ["clip"]]
    if as_json:
        say_json({"encoders": rows})
    elif listed:
        say(*(_line(row) for row in rows))
    elif not quiet:
        say(*(f"{row['name']} is here and whole: {row['files']}" for row in rows))


def _models() -> list[dict[str, Any]]:
    from transduce.encoders import ENCODERS
    from transduce.encoders.hub import cached_hub_model

    models = [entry.hub for entry in ENCODERS.values() if entry.hub is not None]
    return [
        {
            "name": model.name,
            "here": cached_hub_model(model),
            "repository": model.repository,
            "revision": model.revision,
            "license": model.license,
        }
        for model in models
    ]


def _line(row: dict[str, Any]) -> str:
    here = "here" if row["here"] else "not here"
    return f"{row['name']:<10}  {here:<8}  {row['license']:<10}  {row['repository']}"


def _fetch(name: str, *, quiet: bool) -> dict[str, Any]:
    """Download an encoder; one that is not in our list is loaded once, which downloads it."""
    from transduce.encoders import load_encoder
    from transduce.encoders.hub import fetch_hub_model

    bar = partial(download_bar, quiet=quiet)
    model = _hub_model(name)
    if model is None:
        identity = load_encoder(name, bar=bar).identity
        return {"name": name, "files": identity.weights}
    fetched = fetch_hub_model(model, offline=False, bar=bar, look_again=True)
    size = sum(path.stat().st_size for path in fetched.paths.values())
    where = next(iter(fetched.paths.values())).parents[1]
    return {
        "name": name,
        "files": f"{len(fetched.paths)} files, {size / 1e6:,.1f} MB, in {where}",
        "revision": fetched.commit,
        "sha256": dict(fetched.digests),
    }


def _hub_model(name: str) -> "HubModel | None":
    from transduce.encoders import ENCODERS
    from transduce.encoders.onnx_hub import hub_model_of

    prefix, _, rest = name.partition(":")
    if prefix == "onnx-hub" and rest:
        return hub_model_of(rest)
    return ENCODERS[prefix].hub if prefix in ENCODERS and not rest else None
