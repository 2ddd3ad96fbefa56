"""A hub on this machine, and a CLIP of colors in the layout of its ONNX repositories.

For tests and measurements where there is no network: the road is that of the real model, the
labels are of colors alone. An image is its mean color; a sentence is the colors that it names.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

SIZE = 8
COLORS = {"red": (1.0, 0.0, 0.0), "green": (0.0, 1.0, 0.0), "blue": (0.0, 0.0, 1.0)}
WORDS = ["a", "photo", "of", *COLORS, "thing", "."]
PREPROCESSOR = {
    "crop_size": {"height": SIZE, "width": SIZE},
    "do_center_crop": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "resample": 3,
    "size": {"shortest_edge": SIZE},
}
CONTEXT = 12
LARGE = (".onnx", ".onnx_data", "tokenizer.json")  # what the hub keeps as large files


def write_color_clip(
    folder: Path, *, family: str = "clip", suffix: str = "", mask: bool = False
) -> Path:
    """Write the repository of a CLIP, or SigLIP, whose embeddings are colors."""
    from onnx import TensorProto, helper, numpy_helper, save

    clip = family == "clip"
    (folder / "onnx").mkdir(parents=True, exist_ok=True)

    def model(name: str, nodes: list[Any], inputs: list[Any], output: str, **values: Any) -> None:  # noqa: ANN401
        graph = helper.make_graph(
            nodes,
            name,
            inputs,
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ("n", 4))],
            [numpy_helper.from_array(value, key) for key, value in values.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        save(made, folder / "onnx" / f"{name}{suffix}.onnx")

    shape = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ("n", 3, "h", "w"))
    out = "image_embeds" if clip else "pooler_output"
    model(
        "vision_model",
        [
            helper.make_node("ReduceMean", ["pixel_values"], ["color"], axes=[2, 3], keepdims=0),
            helper.make_node("Gemm", ["color", "weights", "bias"], [out]),
        ],
        [shape],
        out,
        weights=np.hstack([np.eye(3), np.zeros((3, 1))]).astype(np.float32),
        bias=np.array([0, 0, 0, 0.5], np.float32),
    )
    _write_tokenizer(folder / "tokenizer.json", clip)
    table = np.zeros((len(WORDS) + 4, 4), np.float32)  # of each token, what it adds to a sentence
    for word, color in COLORS.items():
        table[WORDS.index(word) + 2, :3] = color
    table[-1, 3] = 0.5  # the end of the text
    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("n", "length"))
        for name in ("input_ids", *(["attention_mask"] if mask else []))
    ]
    out = "text_embeds" if clip else "pooler_output"
    last = [  # as CLIP: what was read up to the first end of the text, the highest id
        helper.make_node("CumSum", ["words", "one"], ["read"]),
        helper.make_node("ArgMax", ["input_ids"], ["end"], axis=1, keepdims=1),
        helper.make_node("GatherND", ["read", "end"], [out], batch_dims=1),
    ]
    whole = [helper.make_node("ReduceSum", ["words", "axis"], [out], keepdims=0)]
    model(
        "text_model",
        [helper.make_node("Gather", ["table", "input_ids"], ["words"]), *(last if clip else whole)],
        ids,
        out,
        table=table,
        **({"one": np.array(1, np.int64)} if clip else {"axis": np.array([1], np.int64)}),
    )
    text = {"max_position_embeddings": CONTEXT}
    config = {"model_type": family, "text_config": text}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR), encoding="utf-8")
    return folder


def _write_tokenizer(path: Path, clip: bool) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    known = ["<pad>", "<start>", *WORDS, "<unk>", "<end>"]
    words = Tokenizer(models.WordLevel({word: k for k, word in enumerate(known)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if clip:  # SigLIP's is given small letters
        words.normalizer = normalizers.Lowercase()
    ends = [("<start>", 1), ("<end>", len(known) - 1)]
    form = "<start> $A <end>" if clip else "$A <end>"
    words.post_processor = processors.TemplateProcessing(single=form, special_tokens=ends)
    if clip:
        words.enable_padding(pad_id=len(known) - 1, pad_token="<end>")
    words.save(str(path))


@dataclass(slots=True)
class Hub:
    """A running hub: its address, what it was asked for, and what it shall do wrong."""

    address: str
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, range
    tokens: list[tuple[str, str]] = field(default_factory=list)  # host, authorization
    break_after: int = 0  # bytes after which each answer breaks off; 0 for never
    ranges: bool = True
    damage: bool = False


@contextlib.contextmanager
def serve_hub(repositories: Mapping[str, tuple[Path, str]]) -> Iterator[Hub]:
    """Serve folders as repositories of the hub: ORG/NAME to (folder, commit)."""
    hub = Hub("")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("Range") or ""))
            hub.tokens.append((self.headers["Host"], self.headers.get("Authorization") or ""))
            found = _find(unquote(self.path), repositories)
            if found is None:
                code = _error(self.path, repositories)
                self._reply(401 if code == "RepoNotFound" else 404, {"X-Error-Code": code})
                return
            file, commit, stored = found
            data = file.read_bytes()
            about = {"X-Repo-Commit": commit}
            if file.name.endswith(LARGE) and not stored:  # the hub sends these elsewhere
                digest = hashlib.sha256(data).hexdigest()
                about |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
                self._reply(302, about | {"Location": f"{elsewhere}/stored{self.path}"})
                return
            git = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
            start = self._start() if hub.ranges else 0
            about |= {"ETag": f'"{git}"', "Content-Length": str(len(data) - start)}
            if hub.damage:
                data = bytes(255 - value for value in data)
            self._reply(206 if start else 200, about, data[start:])

        def _start(self) -> int:
            given = self.headers.get("Range") or "bytes=0-"
            return int(given.removeprefix("bytes=").partition("-")[0])

        def _reply(self, code: int, headers: Mapping[str, str], body: bytes = b"") -> None:
            self.send_response(code)
            for name, value in ({"Content-Length": "0"} | dict(headers)).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[: hub.break_after] if hub.break_after else body)
                if hub.break_after:
                    self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    elsewhere = f"http://localhost:{server.server_port}"  # another host, to a client
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _error(path: str, repositories: Mapping[str, tuple[Path, str]]) -> str:
    for name, (_, commit) in repositories.items():
        if path.startswith((f"/{name}/resolve/{commit}/", f"/{name}/resolve/main/")):
            return "EntryNotFound"
        if path.startswith(f"/{name}/"):
            return "RevisionNotFound"
    return "RepoNotFound"


def _find(path: str, repositories: Mapping[str, tuple[Path, str]]) -> tuple[Path, str, bool] | None:
    """Return the file of an address, its commit, and whether it is asked for where it is stored."""
    stored = path.startswith("/stored/")
    path = path.removeprefix("/stored")
    for name, (folder, commit) in repositories.items():
        for revision in (commit, "main"):
            start = f"/{name}/resolve/{revision}/"
            if path.startswith(start) and (folder / path.removeprefix(start)).is_file():
                return folder / path.removeprefix(start), commit, stored
    return None
