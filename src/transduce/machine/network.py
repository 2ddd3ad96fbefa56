"""What may go over the network: no telemetry ever, and with `--offline` nothing at all.

Python reports every connection and every question for a name to its audit hooks; ours refuses them
while `offline` holds, whichever library asks. Libraries in C++ are outside its sight: of those that
come with the extras onnxruntime and Ray have telemetry, which the environment switches off.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from transduce.errors import NetworkRefused

# Set, not proposed: a program that labels somebody's photos reports to nobody.
NO_TELEMETRY = {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DO_NOT_TRACK": "1",
}
OFFLINE = "TRANSDUCE_OFFLINE"  # in the environment, so that worker processes have it too
LOCAL = frozenset({"file", "local", "memory", "zip", "tar"})  # protocols that stay on the machine
NAMES = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
SENDING = ("socket.connect", "socket.sendto", "socket.sendmsg")

_hooked = False
_loopback = False  # whether our own processes talk to each other over 127.0.0.1


def switch_off_telemetry() -> None:
    """Tell the libraries of the extras not to report; call it before they are imported."""
    os.environ.update(NO_TELEMETRY)


def is_offline() -> bool:
    """Whether nothing may go over the network now."""
    return os.environ.get(OFFLINE, "") not in ("", "0")


@contextlib.contextmanager
def offline(wanted: bool = True) -> Iterator[None]:
    """Refuse every connection in the block, here and in the processes that it starts."""
    if not wanted:
        yield
        return
    watch()
    before = os.environ.get(OFFLINE)
    os.environ[OFFLINE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[OFFLINE]
        else:
            os.environ[OFFLINE] = before


def watch() -> None:
    """Begin to look at connections; a hook cannot be removed, so that there is only one."""
    global _hooked
    if not _hooked:
        _hooked = True
        sys.addaudithook(_look)


def allow_loopback() -> None:
    """Let this process talk to 127.0.0.1, for processes of ours that speak over it."""
    global _loopback
    _loopback = True


def check_local(address: str) -> None:
    """Refuse a URL that leads off this machine, if nothing may go over the network."""
    protocols = [part.partition("://")[0] for part in address.split("::") if "://" in part]
    if is_offline() and not LOCAL.issuperset(protocols):
        raise NetworkRefused(
            f"Expected files on this machine under --offline, found {address}; copy them here, or "
            "leave --offline out."
        )


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event in SENDING and is_offline():
        address = arguments[1]
        if isinstance(address, tuple):  # not a path: that is a socket of the machine's own
            _refuse(str(address[0]), f"a connection to {address[0]} port {address[1]}")
    elif event in NAMES and is_offline() and arguments[0] is not None:
        name = arguments[0]
        _refuse(name if isinstance(name, str) else bytes(name).decode(), f"the address of {name!r}")


def _refuse(host: str, what: str) -> None:
    if _loopback and (host.startswith("127.") or host in ("::1", "localhost")):
        return
    raise NetworkRefused(
        f"Expected no use of the network under --offline, found {what} asked for; leave --offline "
        "out, or get what is missing first."
    )
