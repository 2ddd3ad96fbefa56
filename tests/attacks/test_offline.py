"""Nothing goes over the network under --offline, and no telemetry ever."""

import os
import re
import shutil
import socket
import subprocess
import sys

import pytest

from tests.images.pictures import write_pictures
from transduce.errors import NetworkRefused
from transduce.images.sources import find_images
from transduce.machine import network


@pytest.fixture
def listener():
    """A server on this machine that counts who knocks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def knocks(server):
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_no_connection_is_made_while_offline_holds(listener):
    address = listener.getsockname()
    with network.offline():
        assert network.is_offline()
        with pytest.raises(NetworkRefused, match="Expected no use of the network under --offline"):
            socket.create_connection(address)
        with pytest.raises(NetworkRefused), socket.socket() as plain:
            plain.connect(address)
        with pytest.raises(NetworkRefused), socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            datagrams.sendto(b"hello", address)
        with pytest.raises(NetworkRefused):
            socket.getaddrinfo("example.org", 443)
        with pytest.raises(NetworkRefused):
            socket.gethostbyname("example.org")
    assert knocks(listener) == 0
    assert not network.is_offline()
    socket.create_connection(address).close()
    assert knocks(listener) == 1


def test_sockets_of_the_machine_are_no_network(tmp_path):
    with network.offline(), socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "socket"))


def test_processes_started_offline_are_offline_too(listener):
    script = (
        "import socket, transduce\n"
        f"try: socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}))\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    with network.offline():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "NetworkRefused\n"
    assert knocks(listener) == 0


def test_addresses_are_refused_before_any_work(listener, command, tmp_path):
    photos = write_pictures(tmp_path / "photos", 1)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/a.jpg"
    (tmp_path / "list.txt").write_text(f"{photos}/00000.jpg\n{url}\n")
    (tmp_path / "list.csv").write_text(f"file_name\n{url}\n")
    for source in (url, "s3://bucket/photos", "zip://*.jpg::http://example.org/a.zip"):
        code, _, err = command("embed", source, "--out", "store", "--offline")
        assert (code, err.startswith("Error: Expected files on this machine")) == (2, True), err
    for source in ("list.txt", "list.csv"):
        label = ["label", source, "--classes", "red circle,blue star", "--offline"]
        code, _, err = command(*label)
        assert (code, err.startswith("Error: Expected files on this machine")) == (2, True), err
    assert knocks(listener) == 0
    assert not (tmp_path / "store").exists()
    assert not network.is_offline()  # with the command it ended
    with network.offline():
        assert len(find_images(f"file://{photos}").entries) == 1


def test_telemetry_is_off_before_a_library_loads():
    script = (
        "import os, transduce; from transduce.machine.network import NO_TELEMETRY; "
        "print(*(os.environ.get(name) for name in NO_TELEMETRY))"
    )
    clean = {k: v for k, v in os.environ.items() if k not in network.NO_TELEMETRY}
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1", "0", "1"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not there")
def test_the_kernel_sees_no_connection_of_a_whole_run(tmp_path):
    """Also of libraries in C++, which Python's hooks do not see; decoding processes included."""
    photos = write_pictures(tmp_path / "photos", 3)
    command = ["label", photos, "--classes", "red circle,blue star", "--encoder", "shapes"]
    command += ["--out", tmp_path / "out", "--offline", "--workers", "1", "-q"]
    traced = ["strace", "-f", "-o", tmp_path / "calls", "-e", "trace=connect,sendto,sendmsg"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [*traced, sys.executable, "-m", "transduce", *command], env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text()
    assert "exited with 0" in calls
    assert re.findall(r".*AF_INET.*", calls) == []
    assert not (tmp_path / "cache" / "Microsoft").exists()
