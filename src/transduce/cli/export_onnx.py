"""`transduce export-onnx`: an open_clip or Hugging Face model to a folder for `onnx:`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli import options
from transduce.cli.console import folder_name, note, say, say_json
from transduce.errors import InvalidSetting


def export_onnx_command(
    encoder: Annotated[
        str, typer.Argument(help="open_clip:MODEL/TAG, hf:ORG/NAME, hf-hub:... or local-dir:...")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist yet.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an exported folder that is there.")
    ] = False,
    offline: options.Offline = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn a model into a folder that runs with onnxruntime alone: no torch, no network."""
    from transduce.encoders import load_encoder
    from transduce.encoders.export import export_onnx, refuse_existing_export
    from transduce.encoders.torch_towers import TorchEncoder

    refuse_existing_export(out, replace=replace)  # before the model is loaded
    note(f"Loading {encoder}")
    loaded = load_encoder(encoder, offline=offline)
    if not isinstance(loaded, TorchEncoder):
        raise InvalidSetting(
            f"Expected an open_clip: or hf: encoder to export, found {encoder!r}, "
            "which has no model in torch."
        )
    note("Exporting its two towers, a minute or two for a ViT-B/32")
    exported = export_onnx(loaded, out, replace=replace)
    if as_json:
        say_json(asdict(exported) | {"folder": str(out)})
        return
    files = "  ".join(sorted(path.name for path in out.iterdir()))
    say(
        f"Wrote {folder_name(out)}   {files}   ({exported.megabytes:,.1f} MB)",
        "Checked against the model: the same token ids, and embeddings that differ by at most",
        f"  {exported.image_difference:.1e} (images) and {exported.text_difference:.1e} (texts)",
        f"Next: transduce embed PHOTOS --encoder onnx:{out} --out FEATURES",
    )
