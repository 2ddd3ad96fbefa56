"""Who may talk to the review server: only a browser on this machine that knows the token.

The token is the first part of every path, so that no other page can name our addresses: there is
no cookie that a request from another site could borrow. The Host header must be ours, which ends
DNS rebinding; an Origin, where the browser sends one, must be ours as well. What comes in is read
up to a limit in bytes and seconds.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from transduce.labeling.review.connections import Guests

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

ADDRESS = "127.0.0.1"
MOST_BYTES = 65_536  # of the body of a request: a list of names to look at is the longest
MOST_SECONDS = 10.0  # until it has come
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]


def new_token() -> str:
    """Return a random part for the address of a review."""
    return secrets.token_urlsafe(24)


class Gate:
    """Passes the allowed requests on, with the token taken off their path; refuses the others."""

    def __init__(
        self, application: Application, token: str, port: int, guests: Guests | None = None
    ) -> None:
        self._application = application
        self._guests = Guests() if guests is None else guests
        self._token = token
        self._hosts = {f"{ADDRESS}:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            problem = self._problem(scope)
            if problem:
                await _refuse(send, *problem)
            else:
                self._guests.welcome(scope.get("client"))
                await self._pass_on(scope, receive, send)
        else:  # a websocket: nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(MOST_SECONDS):
                body = await _whole_body(receive)
        except TimeoutError:
            await _refuse(send, 408, "The request did not come to an end.")
            return
        if body is None:
            await _refuse(
                send, 413, f"A request may have {MOST_BYTES:,} bytes; longer lists: --only."
            )
            return
        rest = scope["path"].split("/", 2)[2]
        inside = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await self._application(inside, _replay(body, receive), _with_headers(send))

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or named[0].lower() not in self._hosts:
            return 403, "This server answers only to its own address on this machine."
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(origin not in self._origins for origin in origins):
            return 403, "Another site may not use this server."
        parts = scope["path"].split("/", 2)
        given = parts[1] if len(parts) == 3 else ""
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return 403, "Open the whole address that transduce review printed, token and all."
        return None


async def _whole_body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is longer than it may be, and no more is read."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):  # the end, or the client is gone
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and then what comes after it."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(send: Send, status: int, words: str) -> None:
    # Closed, so that nothing more of a body that nobody reads comes in.
    headers = [
        *HEADERS,
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{words}\n".encode()})


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            more = [header for header in HEADERS if header[0] not in own]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return with_headers
