"""Connections to the review server: a limited number, and none that stays silent.

Any program of this machine can connect. It cannot get past the gate without the token, but open
connections cost memory and file descriptors, so that a crowd of silent ones could keep the one
browser out that we serve.
"""

import asyncio
from typing import Any, Protocol

MOST = 64  # a browser opens six
SECONDS = 10.0  # for the head of a request, and between two requests

Client = tuple[str, int]


class Connection(Protocol):
    """What is known of an open connection."""

    client: Client | None
    transport: asyncio.Transport


class Guests:
    """The open connections, the oldest first, and which of them have shown the token."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: dict[Client | None, Connection] = {}
        self._welcome: set[Client | None] = set()

    def enter(self, connection: Connection) -> None:
        """Add a connection; of too many, close the oldest that has not shown the token."""
        self._open[connection.client] = connection
        if len(self._open) > self._most:
            others = [client for client in self._open if client != connection.client]
            strangers = [client for client in others if client not in self._welcome]
            gone = (strangers or others)[0]
            self._open.pop(gone).transport.abort()
            self._welcome.discard(gone)

    def leave(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]
            self._welcome.discard(connection.client)

    def welcome(self, client: Client | None) -> None:
        """Remember that a connection has shown the token."""
        if client in self._open:
            self._welcome.add(client)

    def __len__(self) -> int:
        return len(self._open)


def protocol(guests: Guests, seconds: float = SECONDS) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with these limits."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Limited(H11Protocol):  # type: ignore[misc]  # uvicorn is an extra
        _quiet_since = 0.0
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            guests.enter(self)
            self._quiet_since = self.loop.time()
            self._look()

        def on_response_complete(self) -> None:
            self._quiet_since = self.loop.time()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            guests.leave(self)
            super().connection_lost(exc)

        def _look(self) -> None:
            """Close the connection if it has asked nothing for too long."""
            answering = self.cycle is not None and not self.cycle.response_complete
            waited = 0.0 if answering else self.loop.time() - self._quiet_since
            if waited >= seconds:
                self.transport.abort()
            else:
                self._timer = self.loop.call_later(seconds - waited, self._look)

    made: Any = Limited
    return made
