"""`transduce export-onnx`: an open_clip or Hugging Face model to a folder for `onnx:`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from transduce.errors import InvalidSetting


def export_onnx(
    encoder: Annotated[
        str, typer.Argument(help="open_clip:MODEL/TAG, hf:ORG/NAME, hf-hub:... or local-dir:...")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist yet.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an exported folder that is there.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn a model into a folder that runs with onnxruntime alone: no torch, no network."""
    from transduce.encoders import load_encoder
    from transduce.encoders.export import export_onnx as export
    from transduce.encoders.export import refuse_existing
    from transduce.encoders.torch_towers import TorchEncoder

    refuse_existing(out, replace=replace)  # before the model is loaded
    typer.echo(f"Loading {encoder}", err=True)
    loaded = load_encoder(encoder, offline=offline)
    if not isinstance(loaded, TorchEncoder):
        raise InvalidSetting(
            f"Expected an open_clip: or hf: encoder to export, found {encoder!r}, "
            "which has no model in torch."
        )
    typer.echo("Exporting its two towers, about a minute for a ViT-B/32", err=True)
    exported = export(loaded, out, replace=replace)
    if as_json:
        typer.echo(json.dumps(asdict(exported) | {"folder": str(out)}, indent=2))
        return
    files = "  ".join(sorted(path.name for path in out.iterdir()))
    typer.echo(f"Wrote {str(out).rstrip('/')}/   {files}   ({exported.megabytes:,.1f} MB)")
    typer.echo(
        "Checked against the model: the same token ids; embeddings differ by at most "
        f"{exported.image_difference:.1e} (pictures) and {exported.text_difference:.1e} (texts)"
    )
    typer.echo(f"Next: transduce embed PHOTOS --encoder onnx:{out} --out FEATURES")
