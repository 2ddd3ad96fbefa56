"""What the server answers, and to whom."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from PIL import Image

from tests.labeling.report.small_runs import small_run
from tests.labeling.review.asking import Client
from transduce.errors import MissingExtra, PortTaken
from transduce.labeling.review import app as review_app
from transduce.labeling.review.gate import new_token
from transduce.labeling.review.session import ReviewSession

JSON = {"content-type": "application/json"}
TOKEN, PORT = "the-token", 4321
HERE = f"127.0.0.1:{PORT}"
DOUBTFUL = [0.4, 0.35, 0.25]


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, images=6, probabilities=[DOUBTFUL] * 6)


@pytest.fixture
def client(run):
    app = review_app.create_app(ReviewSession(run), token=TOKEN, port=PORT)
    return Client(app, HERE)


def test_the_page_and_its_policy(client):
    page = client.get(f"/{TOKEN}/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in page.headers


@pytest.mark.parametrize(
    "path",
    ["/", "/state", "/wrong/", "/wrong/state", f"/{TOKEN}", f"/{TOKEN}x/", "//", "/the-toke/",
     "/%C3%BC/", f"/x/{TOKEN}/state"],
)  # fmt: skip
def test_without_the_token_nothing(client, path):
    answer = client.get(path)
    assert answer.status == 403
    assert "transduce review printed" in answer.text


def test_no_request_without_the_token_changes_anything(client, run):
    assert client.post("/answer", {"row": 0, "label": "cat"}).status == 403
    assert client.post("/wrong/answer", {"row": 0, "label": "cat"}).status == 403
    assert run.corrections() == {}


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{PORT}",
     f"127.0.0.2:{PORT}", f"evil@127.0.0.1:{PORT}", ""],
)  # fmt: skip
def test_other_hosts_are_refused_even_with_the_token(client, host):
    answer = client.get(f"/{TOKEN}/state", host=host)
    assert answer.status == 403
    assert "own address" in answer.text


def test_localhost_is_this_machine(client):
    headers = {"host": f"LOCALHOST:{PORT}", "origin": f"http://localhost:{PORT}"}
    assert client.get(f"/{TOKEN}/state", **headers).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}"])
def test_other_sites_are_refused_even_with_the_token(client, run, origin):
    answer = client.post(f"/{TOKEN}/answer", {"row": 0, "label": "cat"}, origin=origin)
    assert answer.status == 403
    assert run.corrections() == {}


@pytest.mark.parametrize(
    "path",
    ["../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "run/../../run.toml",
     "run/%2e%2e/labels.csv", "run/0/../../labels.csv", "run/-1", "run/6", "run/1e3", "run/0x0",
     "run/image%20000.png", "%00/0%00", "run//etc/passwd", "run/%2fetc%2fpasswd"],
)  # fmt: skip
def test_images_are_found_by_their_number_only(client, path):
    answer = client.get(f"/{TOKEN}/image/{path}")
    assert answer.status in (404, 422)
    assert answer.headers["content-type"] == "application/json"
    assert "root:" not in answer.text


def test_an_image(client):
    answer = client.get(f"/{TOKEN}/image/transduce-001/3")
    assert answer.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(answer.content)).size == (40, 30)


def test_an_image_that_is_gone(client, run):
    for path in (run.folder.parents[1] / "images").iterdir():
        path.unlink()
    answer = client.get(f"/{TOKEN}/image/transduce-001/3")
    assert (answer.status, answer.json()) == (404, {"problem": "missing: no such file"})


def test_answers_go_to_the_file(client, run):
    item = client.get(f"/{TOKEN}/state").json()["item"]
    after = client.post(f"/{TOKEN}/answer", {"row": item["row"], "label": "fox"}).json()
    assert run.corrections() == {item["file_name"]: "fox"}
    assert after["left"] == 5
    assert client.post(f"/{TOKEN}/undo").json()["left"] == 6
    assert run.corrections() == {}


@pytest.mark.parametrize(
    "body",
    [{"row": 0, "label": "wolf"}, {"row": 99, "label": "cat"}, {"row": "x", "label": "cat"}, {}],
)
def test_bad_answers_are_refused_in_words(client, run, body):
    answer = client.post(f"/{TOKEN}/answer", body)
    assert answer.status == 422
    assert run.corrections() == {}


def test_getting_changes_nothing(client):
    for path in ("answer", "undo", "solve"):
        assert client.get(f"/{TOKEN}/{path}").status == 405


def test_there_is_no_documentation_to_explore(client):
    for path in ("docs", "redoc", "openapi.json"):
        assert client.get(f"/{TOKEN}/{path}").status == 404


def test_names_are_no_part_of_the_page(tmp_path):
    classes = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "c")
    run = small_run(tmp_path, images=3, classes=classes)
    app = review_app.create_app(ReviewSession(run), token=TOKEN, port=PORT)
    client = Client(app, HERE)
    page = client.get(f"/{TOKEN}/").text
    assert page.count("<script") == 1
    assert "<img src=x" not in page
    assert "alert(1)" not in page  # they come as data, and are set as text
    assert client.get(f"/{TOKEN}/classes").json() == list(classes)


def test_several_hundred_images_are_asked_in_constant_requests(tmp_path):
    names = [f"{number}.png" for number in range(600)]
    run = small_run(tmp_path, names=names, paths=[""] * 600, probabilities=[DOUBTFUL] * 600)
    app = review_app.create_app(ReviewSession(run), token=TOKEN, port=PORT)
    client = Client(app, HERE)
    state = client.get(f"/{TOKEN}/state")
    for _ in range(40):
        assert len(state.content) < 2000  # what is sent does not grow with the run
        body = {"row": state.json()["item"]["row"], "label": "cat"}
        state = client.post(f"/{TOKEN}/answer", body)
    assert state.json()["left"] == 560


def test_it_listens_to_this_machine_only():
    with review_app._listen(0) as listener:
        address, port = listener.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(PortTaken, match="choose another"):
            review_app._listen(port)


def test_tokens_differ_and_cannot_be_guessed():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_a_missing_extra_is_told_with_its_command(run, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match="pip install --upgrade transduce"):
        review_app.serve_review(ReviewSession(run), 0, lambda address: None)


def test_the_command_serves_until_it_is_interrupted(run):
    command = [
        sys.executable,
        "-c",
        "from transduce.cli.main import run_command_line; run_command_line()",
    ]
    with subprocess.Popen(
        [*command, "review", str(run.folder), "--no-open"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            address = process.stdout.readline().split()[1]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
            with urlopen(f"{address}state", timeout=30) as answer:
                row = json.load(answer)["item"]["row"]
            body = json.dumps({"row": row, "label": "fox"}).encode()
            urlopen(Request(f"{address}answer", body, JSON), timeout=30).close()
            with pytest.raises(HTTPError, match="403") as refused:
                urlopen(Request(address, headers={"host": "evil.example"}), timeout=30)
            refused.value.close()
            with (
                socket.socket(socket.AF_INET6) as other,
                pytest.raises(OSError, match=r"refused|assign"),
            ):
                other.connect(("::1", urlsplit(address).port))
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
        words = process.stderr.read()
    assert "6 images of" in words
    assert "1 answer is in" in words
    assert address.split("/")[3] not in words  # no log with the token in it


COMMAND = (
    sys.executable,
    "-c",
    "from transduce.cli.main import run_command_line; run_command_line()",
    "review",
)


@contextlib.contextmanager
def reviewing(run, *options, **environment):
    """The command in a process of its own; yields it and the address it printed."""
    with subprocess.Popen(
        [*COMMAND, str(run.folder), "--no-open", *options], env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process, process.stdout.readline().split()[1]
        finally:
            process.kill()


def test_killed_it_loses_nothing_and_the_next_one_goes_on(run):
    acknowledged = {}
    with reviewing(run) as (process, address):
        refused = subprocess.run(
            [*COMMAND, str(run.folder)], capture_output=True, text=True, timeout=60, check=False
        )
        assert refused.returncode == 2
        assert f"found another review of it (process {process.pid})" in refused.stderr
        for row in range(4):
            body = json.dumps({"row": row, "label": "fox"}).encode()
            urlopen(Request(f"{address}answer", body, JSON), timeout=30).close()
            acknowledged[run.labels.file_name[row]] = "fox"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert run.corrections() == acknowledged
    with reviewing(run) as (_, address), urlopen(f"{address}state", timeout=30) as answer:
        assert json.load(answer)["corrections"] == 4


def test_an_audit_says_how_to_reach_it_and_how_to_go_on(run):
    login = {"SSH_CONNECTION": "10.0.0.9 50000 10.0.0.1 22"}
    with reviewing(run, "--audit", "4", "--seed", "3", **login) as (process, address):
        with urlopen(f"{address}state", timeout=30) as answer:
            state = json.load(answer)
        body = json.dumps({"row": state["item"]["row"], "label": "fox"}).encode()
        urlopen(Request(f"{address}answer", body, JSON), timeout=30).close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        words = process.stderr.read()
    port = urlsplit(address).port
    assert f"ssh -L {port}:127.0.0.1:{port} " in words
    assert "@10.0.0.1" in words
    assert "seed 3" in words
    assert "1 answer is in" in words
    assert f"1 of 4 audited. Go on: transduce review {run.folder} --audit 4" in words
    assert len(run.journal().audit) == 1
    assert run.corrections() == {}


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from transduce.cli.main import run_command_line; run_command_line()",
    ]
    ended = subprocess.run(
        [*command, "review", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert "Expected a run directory" in ended.stderr
