"""A web server of the tests' own, on this machine, that can be told to misbehave."""

import contextlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """Files by path, and the requests that were made."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range
    ranges: bool = True
    tag: str = '"first"'
    kind: str = "application/octet-stream"
    break_after: int | None = None  # bytes, once

    def url(self, name):
        return f"{self.address}/{name}"


@contextlib.contextmanager
def serve():
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range")
            site.asked.append((self.path, wanted))
            content = site.files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            start = 0
            if wanted and site.ranges and self.headers.get("If-Range") == site.tag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("Content-Type", site.kind)
            if site.tag:
                self.send_header("ETag", site.tag)
            self.end_headers()
            end = len(content)
            if site.break_after is not None:
                end, site.break_after = start + site.break_after, None
            self.wfile.write(content[start:end])

        def log_message(self, format, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
