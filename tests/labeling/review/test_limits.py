"""What the server does when it is flooded, kept waiting, fed nonsense, or out of room."""

import contextlib
import http.client
import json
import resource
import shutil
import socket
import threading

import pytest
import uvicorn

from tests.labeling.report.small_runs import small_run
from tests.labeling.review.asking import Client
from transduce.labeling.review import gate
from transduce.labeling.review.app import _listen, create_app
from transduce.labeling.review.connections import Guests, protocol
from transduce.labeling.review.gate import MOST_BYTES
from transduce.labeling.review.session import ReviewSession

TOKEN, PORT = "the-token", 4321
MOST = 8


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, images=6, probabilities=[[0.4, 0.35, 0.25]] * 6)


@pytest.fixture
def client(run):
    return Client(create_app(ReviewSession(run), token=TOKEN, port=PORT), f"127.0.0.1:{PORT}")


@contextlib.contextmanager
def served(run, seconds):
    """The application behind uvicorn, with small limits; yields its port and its guests."""
    listener, guests = _listen(0), Guests(MOST)
    port = listener.getsockname()[1]
    app = create_app(ReviewSession(run), token=TOKEN, port=port, guests=guests)
    config = uvicorn.Config(
        app, log_level="critical", ws="none", http=protocol(guests, seconds), backlog=64
    )
    served = uvicorn.Server(config)
    thread = threading.Thread(target=served.run, args=([listener],))
    thread.start()
    yield port, guests
    served.should_exit = True
    thread.join(timeout=30)
    listener.close()


@pytest.fixture
def server(run):
    with served(run, 30) as both:
        yield both


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def state_of(port):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as asked:
        asked.request("GET", f"/{TOKEN}/state")
        return asked.getresponse().status


def closed(connection):
    """Whether the other side hangs up within ten seconds."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "body",
    ['{"row": NaN, "label": "cat"}', '{"row": Infinity, "label": "cat"}',
     '{"row": true, "label": "cat"}', '{"row": 1e400, "label": "cat"}', '{"row": 0.5, "label": 1}',
     '{"row": 0', "", "null", "[]", "[" * 60_000, '{"row": 0, "label": "\\ud800"}', "\xff",
     '{"row": -1, "label": "cat"}', '{"row": 10e30, "label": "cat"}', '{"label": "cat"}'],
    ids=range(15),
)  # fmt: skip
def test_nonsense_is_refused_in_words(client, run, body):
    answer = client.post_bytes(f"/{TOKEN}/answer", body.encode("latin-1"))
    assert answer.status == 422
    assert answer.json()["problem"].startswith("Expected")
    assert run.corrections() == {}


def test_a_long_body_is_refused_and_not_kept(server):
    port, _ = server
    with connect(port) as long:
        head = f"POST /{TOKEN}/answer HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        long.sendall(f"{head}content-length: 600000000\r\n\r\n".encode())
        piece = b"x" * 10_000
        sent = 0
        with contextlib.suppress(OSError):  # it hangs up while we send
            while sent < 50 * MOST_BYTES:
                sent += long.send(piece)
        answer = b""
        with contextlib.suppress(OSError):
            answer = long.recv(1000)
    assert sent < 50 * MOST_BYTES or answer.startswith(b"HTTP/1.1 413")
    assert state_of(port) == 200


def test_a_body_of_one_byte_too_many(client):
    assert client.post_bytes(f"/{TOKEN}/answer", b" " * (MOST_BYTES + 1)).status == 413
    assert client.post_bytes(f"/{TOKEN}/answer", b" " * MOST_BYTES).status == 422


def test_silent_connections_are_closed(run):
    with served(run, 0.3) as (port, guests), connect(port) as silent, connect(port) as slow:
        slow.sendall(b"GET / HT")
        assert closed(silent)
        assert closed(slow)
        assert len(guests) == 0


def test_a_crowd_does_not_keep_the_browser_out(server):
    port, guests = server
    with contextlib.ExitStack() as crowd:
        browser = crowd.enter_context(
            contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10))
        )
        browser.request("GET", f"/{TOKEN}/state")
        assert browser.getresponse().read()
        strangers = [crowd.enter_context(connect(port)) for _ in range(5 * MOST)]
        assert state_of(port) == 200
        assert len(guests) <= MOST
        browser.request("GET", f"/{TOKEN}/state")  # the connection that had shown the token
        assert browser.getresponse().status == 200
        assert closed(strangers[0])


def test_guests_that_showed_the_token_stay():
    class Connection:
        def __init__(self, number):
            self.client = ("127.0.0.1", number)
            self.transport = self
            self.gone = False

        def abort(self):
            self.gone = True

    guests = Guests(3)
    connections = [Connection(number) for number in range(7)]
    for connection in connections:
        guests.enter(connection)
        if connection is connections[0]:
            guests.welcome(connection.client)
    assert [connection.gone for connection in connections] == [False, *[True] * 4, False, False]
    for connection in connections:
        guests.leave(connection)
    assert len(guests) == 0


def test_no_room_for_an_answer_is_said_and_changes_nothing(client, run):
    client.post(f"/{TOKEN}/answer", {"row": 0, "label": "cat"})
    before = client.get(f"/{TOKEN}/state").json()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (run.journal().path.stat().st_size + 10, limit[1]))
    try:
        refused = client.post(f"/{TOKEN}/answer", {"row": 1, "label": "dog"})
        undone = client.post(f"/{TOKEN}/undo")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (refused.status, undone.status) == (507, 507)
    assert "nothing of it was saved" in refused.json()["problem"]
    assert client.get(f"/{TOKEN}/state").json() == before
    assert len(run.corrections()) == 1
    assert client.post(f"/{TOKEN}/undo").json()["corrections"] == 0


def test_reviewed_csv_that_cannot_be_written_is_said(client, run):
    client.post(f"/{TOKEN}/answer", {"row": 0, "label": "cat"})
    (run.folder / "reviewed.csv").unlink()
    (run.folder / "reviewed.csv").mkdir()
    state = client.post(f"/{TOKEN}/answer", {"row": 1, "label": "cat"}).json()
    assert "Your answers are saved" in state["trouble"]
    assert state["corrections"] == len(run.journal().review) == 2


def test_a_run_that_was_removed_is_said(client, run):
    client.get(f"/{TOKEN}/state")
    shutil.rmtree(run.folder)
    answer = client.post(f"/{TOKEN}/answer", {"row": 0, "label": "cat"})
    assert answer.status == 507
    assert "No such file" in answer.json()["problem"]
    assert client.get(f"/{TOKEN}/state").json()["corrections"] == 0


def test_many_writers_at_once_lose_nothing(server, run):
    port, _ = server

    def answer(row):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
            for label in ("cat", "dog", "fox"):
                asked.request("POST", f"/{TOKEN}/answer", json.dumps({"row": row, "label": label}))
                response = asked.getresponse()
                response.read()
                if response.status == 200:
                    acknowledged.append((row, label))

    acknowledged = []
    threads = [threading.Thread(target=answer, args=(row,)) for row in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(acknowledged) == 18
    lines = run.journal().lines
    assert len(lines) == 18
    assert {line["label"] for line in lines} == {"cat", "dog", "fox"}
    assert set(run.corrections().values()) == {"fox"}


def test_a_body_that_never_ends_is_given_up(server, monkeypatch):
    monkeypatch.setattr(gate, "MOST_SECONDS", 0.2)  # ten in use
    port, _ = server
    with connect(port) as slow:
        head = f"POST /{TOKEN}/answer HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        slow.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
