"""One request to an application, without a server or a client that would tidy the path."""

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


@dataclass(frozen=True)
class Client:
    app: object
    host: str

    def get(self, path, **headers):
        return self._ask("GET", path, b"", headers)

    def post(self, path, body=None, **headers):
        return self._ask("POST", path, json.dumps(body).encode(), headers)

    def post_bytes(self, path, body):
        return self._ask("POST", path, body, {})

    def _ask(self, method, path, body, headers):
        given = {"host": self.host, "content-type": "application/json", **headers}
        scope = {
            "type": "http", "method": method, "scheme": "http", "query_string": b"",
            "asgi": {"version": "3.0"}, "http_version": "1.1", "root_path": "",
            "path": unquote_to_bytes(path).decode(), "raw_path": path.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip
        return asyncio.run(_exchange(self.app, scope, body))


async def _exchange(app, scope, body):
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    content = b"".join(message.get("body", b"") for message in sent)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, content)
