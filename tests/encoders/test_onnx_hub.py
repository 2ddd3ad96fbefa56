"""CLIP and SigLIP in the hub's ONNX layout: downloaded from a hub on this machine, and run."""

import json
import socket
import threading
from dataclasses import replace

import numpy as np
import pytest
from huggingface_hub import hf_hub_download, scan_cache_dir  # reads the environment once
from PIL import Image

from benchmarks.small_hub import COLORS, CONTEXT, SIZE, serve_hub, write_color_clip
from tests.encoders.small_models import SENTENCES
from transduce.encoders import DEFAULT_ENCODER, ENCODERS, load_encoder, pinned
from transduce.encoders.hub import cached_hub_model, fetch_hub_model
from transduce.encoders.onnx_hub import OnnxHubEncoder, hub_model_of
from transduce.encoders.tokenizers.hub_texts import HubTokenizer
from transduce.errors import InvalidEncoder, MissingWeights

COMMIT, NAME = "0123456789abcdef0123456789abcdef01234567", "tiny/color-clip"
MODEL = replace(hub_model_of(f"{NAME}@{COMMIT}"), name="tiny")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return write_color_clip(tmp_path_factory.mktemp("hub") / "clip")


@pytest.fixture
def hub(repository, tmp_path, monkeypatch):
    """A hub with the repository, and an empty cache."""
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with serve_hub({NAME: (repository, COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def downloads(hub):
    return [path for method, path, _ in hub.asked if method == "GET" and "/stored/" in path]


def color_rows(encoder):
    """The images of the three colors, as rows, and the sentences about them."""
    images = [Image.new("RGB", (20, 14), color) for color in ("red", "lime", "blue")]
    pixels = np.stack([encoder.preprocessing(image) for image in images])
    return encoder.embed_images(pixels), encoder.embed_classes(list(COLORS))


def test_images_are_named_by_their_color(hub):
    encoder = load_encoder(f"onnx-hub:{NAME}")
    images, texts = color_rows(encoder)
    assert (images @ texts.T).argmax(1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1.0, atol=1e-6)
    assert encoder.embed_images(np.zeros((0, 3, SIZE, SIZE), np.float32)).shape == (0, 4)
    assert encoder.embed_texts([]).shape == (0, 4)
    identity = encoder.identity
    assert (identity.encoder, identity.dimension) == (f"onnx-hub:{NAME}", 4)
    assert identity.origin.startswith(f"{NAME}@{COMMIT}: onnx/vision_model.onnx sha256:")
    again = load_encoder(f"onnx-hub:{NAME}", offline=True).identity
    assert again == identity
    assert len(downloads(hub)) == 3  # two towers and the tokenizer, once


def test_the_cache_is_that_of_huggingface_hub(hub, tmp_path):
    fetched = fetch_hub_model(MODEL, offline=False)
    cache = tmp_path / "home" / "hub"
    for file, path in fetched.paths.items():
        theirs = hf_hub_download(
            NAME, file, revision=COMMIT, cache_dir=cache, local_files_only=True
        )
        assert theirs == str(path)
    [known] = scan_cache_dir(cache).repos
    assert (known.repo_id, len(known.revisions)) == (NAME, 1)
    blob = fetched.paths["onnx/text_model.onnx"].resolve()
    assert blob.name == fetched.digests["onnx/text_model.onnx"]


def test_what_huggingface_hub_downloaded_is_used(hub, tmp_path):
    for file in MODEL.files:
        hf_hub_download(
            NAME, file, revision=COMMIT, cache_dir=tmp_path / "home" / "hub", endpoint=hub.address
        )
    assert cached_hub_model(MODEL)
    before = len(hub.asked)
    assert fetch_hub_model(MODEL, offline=False).commit == COMMIT
    assert len(hub.asked) == before


def test_a_download_that_breaks_off_goes_on(hub):
    whole = fetch_hub_model(MODEL, offline=False).digests
    steps = []

    class Bar:
        def __enter__(self):
            return steps.append

        def __exit__(self, *error):
            pass

    other = replace(MODEL, repository=NAME)
    for path in fetch_hub_model(MODEL, offline=False).paths.values():
        path.resolve().unlink()
        path.unlink()
    hub.break_after = 300
    titles = []
    fetched = fetch_hub_model(
        other, offline=False, bar=lambda title, total: titles.append((title, total)) or Bar()
    )
    assert fetched.digests == whole
    assert any(given.startswith("bytes=300-") for _, _, given in hub.asked)
    assert titles == [("Downloading tiny, once", sum(steps))]


def test_a_stopped_download_is_kept_and_a_server_without_ranges_begins_anew(hub):
    hub.ranges, hub.break_after = False, 100
    with pytest.raises(MissingWeights, match="the same command goes on from there"):
        fetch_hub_model(MODEL, offline=False)
    hub.break_after = 0
    assert fetch_hub_model(MODEL, offline=False).commit == COMMIT


def test_what_is_not_the_file_that_is_meant_is_refused_and_not_kept(hub):
    wrong = replace(MODEL, files=MODEL.files | {"tokenizer.json": "0" * 64})
    with pytest.raises(InvalidEncoder, match=f"with checksum {'0' * 64}, found"):
        fetch_hub_model(wrong, offline=False)
    assert not cached_hub_model(MODEL)
    hub.damage = True
    with pytest.raises(InvalidEncoder, match=r"damaged on the way"):
        fetch_hub_model(MODEL, offline=False)
    hub.damage = False
    path = fetch_hub_model(MODEL, offline=False).paths["onnx/vision_model.onnx"]
    path.resolve().write_bytes(b"changed later")
    with pytest.raises(InvalidEncoder, match="damaged or was changed: delete it"):
        fetch_hub_model(MODEL, offline=True)


def test_without_weights_and_network_one_line_says_what_to_do(hub, monkeypatch):
    with pytest.raises(MissingWeights, match=r"leave --offline out, .*transduce download tiny"):
        fetch_hub_model(MODEL, offline=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingWeights, match="unset HF_HUB_OFFLINE"):
        fetch_hub_model(MODEL, offline=False)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert not hub.asked
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(MissingWeights, match=r"no network to 127.0.0.1 \(Connection refused\)"):
            fetch_hub_model(MODEL, offline=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with pytest.raises(MissingWeights, match=r"no network to the proxy proxy.invalid") as caught:
        fetch_hub_model(MODEL, offline=False)
    assert "\n" not in str(caught.value)


def test_a_hub_that_takes_no_connection_is_given_up_in_time(hub, monkeypatch):
    """An address where nothing ever answers, as behind some firewalls."""
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "0.2")
    released = threading.Event()

    def connect(*given, **options):
        released.wait(60)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(MissingWeights, match=r"no answer in 0\.2 s"):
        fetch_hub_model(MODEL, offline=False)
    released.set()


def test_names_that_are_not_on_the_hub(hub):
    with pytest.raises(MissingWeights, match="nobody/nothing is private, gated or not there"):
        load_encoder("onnx-hub:nobody/nothing")
    with pytest.raises(MissingWeights, match=r"found no tiny/color-clip at that revision"):
        load_encoder(f"onnx-hub:{NAME}@{'f' * 40}")
    for name in ("one", "../etc/x", "a/b/c", "a/..", "a/b@../c"):
        with pytest.raises(InvalidEncoder, match="Expected "):
            load_encoder(f"onnx-hub:{name}")


def test_a_repository_without_towers(hub, repository, tmp_path, monkeypatch):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").write_text("{}")
    with serve_hub({NAME: (tmp_path / "bare", COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        with pytest.raises(InvalidEncoder, match=r"Expected onnx/vision_model.onnx in tiny"):
            load_encoder(f"onnx-hub:{NAME}")


def test_the_token_goes_to_the_hub_and_nowhere_else(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    fetch_hub_model(MODEL, offline=False)
    tokens = {host.partition(":")[0]: token for host, token in hub.tokens}
    assert tokens == {"127.0.0.1": "Bearer secret", "localhost": ""}


def test_siglip_is_padded_to_its_length_in_small_letters(tmp_path, hub, monkeypatch):
    folder = write_color_clip(tmp_path / "siglip", family="siglip")
    with serve_hub({NAME: (folder, COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        encoder = load_encoder(f"onnx-hub:{NAME}")
    images, texts = color_rows(encoder)
    assert (images @ texts.T).argmax(1).tolist() == [0, 1, 2]
    tokens, mask = encoder._tokenizer.encode(["A RED thing"])
    assert tokens.shape == (1, CONTEXT)
    assert mask.sum() == 4
    np.testing.assert_allclose(
        encoder.embed_texts(["A RED THING"]), encoder.embed_texts(["a red thing"])
    )


def test_clip_is_padded_to_the_longest_and_cut_at_its_context(hub):
    encoder = load_encoder(f"onnx-hub:{NAME}")
    tokens, mask = encoder._tokenizer.encode(["red", "a photo of a blue thing."])
    assert tokens.shape == (2, 9)
    assert mask.sum(1).tolist() == [3, 9]
    together = encoder.embed_texts(["red", "a photo of a blue thing."])
    np.testing.assert_allclose(together[0], encoder.embed_texts(["red"])[0], atol=1e-6)
    cut, _ = encoder._tokenizer.encode(["red " * 50])
    assert cut.shape == (1, CONTEXT)
    assert cut[0, -1] == tokens.max()  # the end of the text stays


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_tokens_are_those_of_transformers(family, clip_folder, siglip_folder, tmp_path):
    """Of the same model's files; padding differs where the model does not look at it."""
    from transformers import AutoTokenizer

    from transduce.encoders.portable_tokenizers import of_transformers

    folder = {"clip": clip_folder, "siglip": siglip_folder}[family]
    theirs = AutoTokenizer.from_pretrained(folder)
    of_transformers(theirs).save(str(tmp_path / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    words = json.loads((folder / "tokenizer_config.json").read_text())
    config["text_config"].pop("pad_token_id", None)  # as in configs that leave defaults out
    ours = HubTokenizer.read(tmp_path / "tokenizer.json", config, family=family, words=words)
    length = config["text_config"]["max_position_embeddings"]
    rows = theirs(list(SENTENCES), padding="max_length", truncation=True, max_length=length)
    expected = np.array(rows["input_ids"])
    tokens, mask = ours.encode(SENTENCES)
    if family == "siglip":  # every sentence of one length, and its padding is looked at
        assert np.array_equal(tokens, expected)
    for row, full, kept in zip(tokens, expected, mask.sum(1), strict=True):
        assert np.array_equal(row[:kept], full[:kept])
        assert kept == length or full[kept] == theirs.pad_token_id


def test_weights_beside_the_graph_are_fetched_and_found(hub, tmp_path, monkeypatch):
    """Models beyond two gigabytes: model.onnx_data, a link beside a link in the cache."""
    import onnx

    folder = write_color_clip(tmp_path / "large")
    tower = folder / "onnx" / "vision_model.onnx"
    onnx.save(onnx.load(tower), tower, save_as_external_data=True, size_threshold=0,
              location="vision_model.onnx_data")  # fmt: skip
    with serve_hub({NAME: (folder, COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        encoder = load_encoder(f"onnx-hub:{NAME}")
    images, texts = color_rows(encoder)
    assert (images @ texts.T).argmax(1).tolist() == [0, 1, 2]
    assert "onnx/vision_model.onnx_data sha256:" in encoder.identity.origin


def test_a_text_tower_that_wants_a_mask(tmp_path, hub, monkeypatch):
    folder = write_color_clip(tmp_path / "masked", mask=True)
    with serve_hub({NAME: (folder, COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        encoder = load_encoder(f"onnx-hub:{NAME}")
    assert [entry.name for entry in encoder._text.get_inputs()] == ["input_ids", "attention_mask"]
    assert encoder.embed_texts(["a red thing"]).shape == (1, 4)


def test_files_that_do_not_fit_are_refused_by_name(hub):
    fetched = fetch_hub_model(MODEL, offline=False)
    for file, text, problem in [
        ("config.json", "{}", "found None; choose another"),
        ("tokenizer.json", "{}", "Expected a tokenizer.json of Hugging Face in"),
        ("preprocessor_config.json", '{"size": 8}', "image_mean"),
    ]:
        spoiled = replace(fetched, paths=dict(fetched.paths))
        spoiled.paths[file] = fetched.paths[file].parent / f"spoiled-{file}"
        spoiled.paths[file].write_text(text)
        with pytest.raises(InvalidEncoder, match=problem):
            OnnxHubEncoder(_without_family(spoiled), name="tiny").embed_texts(["red"])
    swapped = replace(fetched, paths=dict(fetched.paths))
    towers = ("onnx/vision_model.onnx", "onnx/text_model.onnx")
    for one, other in (towers, towers[::-1]):
        swapped.paths[one] = fetched.paths[other]
    with pytest.raises(
        InvalidEncoder, match=r"Expected inputs pixel_values in .*text_model\.onnx, found"
    ):
        OnnxHubEncoder(swapped, name="tiny").embed_texts(["red"])


def _without_family(fetched):
    """The same files with a config.json that names no family, so that nothing is supposed."""
    path = fetched.paths["config.json"].parent / "no-family.json"
    known = json.loads(fetched.paths["config.json"].read_text())
    path.write_text(json.dumps({key: known[key] for key in known if key != "model_type"}))
    return replace(fetched, paths={**fetched.paths, "config.json": path})


def test_clip_is_pinned_and_the_default():
    assert DEFAULT_ENCODER == "clip"
    for model in (pinned.CLIP, pinned.CLIP_Q8, pinned.DINOV2, pinned.DINOV2_Q8):
        assert ENCODERS[model.name].hub is model
        assert len(model.revision) == 40
        assert all(len(digest) in (0, 64) for digest in model.files.values())
    assert sum(map(bool, pinned.CLIP_Q8.files.values())) == 4


def test_the_default_is_loaded_as_any_other(hub, repository, monkeypatch):
    """With the checksums of the made repository in place of OpenAI's."""
    model = replace(pinned.CLIP, files=dict.fromkeys(pinned.CLIP.files, ""))
    entry = replace(ENCODERS["clip"], hub=model)
    monkeypatch.setitem(ENCODERS._entries, "clip", entry)
    with serve_hub({model.repository: (repository, model.revision)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        assert load_encoder("clip").identity.encoder == "clip"
