"""The web application of a review, and how it is served: on this machine, to one browser."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from markupsafe import Markup

from transduce.errors import InvalidAnswer, MissingExtra, NotSaved, PortTaken, TransduceError
from transduce.images.entries import Unreadable
from transduce.labeling.report.page import asset, environment, security_policy
from transduce.labeling.review.connections import Guests, protocol
from transduce.labeling.review.gate import ADDRESS, Application, Gate, new_token
from transduce.labeling.review.session import ReviewSession

LARGEST_SIDE = 1000  # pixels; an image on the screen need not be larger
SMALL_SIDE = 240  # in a grid or beside a class
PACKAGE = "transduce.labeling.review"
SCRIPTS = ("page.js", "class_box.js", "one.js", "grid.js", "lists.js", "solve.js", "keys.js")

Body = TypeVar("Body")


@dataclass(frozen=True)
class Answer:
    """The label of one image; null skips it. `same`: also of those that look the same."""

    row: int
    label: str | None
    same: bool = False


@dataclass(frozen=True)
class GridAnswer:
    """Rows whose labels are right, and rows to ask about."""

    right: list[int]
    wrong: list[int]


@dataclass(frozen=True)
class LabelForAll:
    """One label for several rows."""

    rows: list[int]
    label: str
    new_class: str = ""


@dataclass(frozen=True)
class RowBody:
    """One image."""

    row: int


@dataclass(frozen=True)
class Text:
    """Words to look for, the name of a group, or a list of file names."""

    text: str


@dataclass(frozen=True)
class Nothing:
    """The body of a request that needs none."""


def create_app(
    session: ReviewSession, *, token: str, port: int, guests: Guests | None = None
) -> Application:
    """Return the application behind its gate; every path begins with the token."""
    try:
        from fastapi import FastAPI, Request
        from fastapi.responses import HTMLResponse, JSONResponse, Response
        from starlette.concurrency import run_in_threadpool
    except ImportError:
        raise MissingExtra("The review page") from None

    def explain(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"problem": _words(error)}, _status(error))

    def page() -> HTMLResponse:
        text, rules = _page(session)
        return HTMLResponse(text, headers={"content-security-policy": rules})

    def image(row: int, side: int) -> Response:
        try:
            data = session.jpeg(row, side)
        except Unreadable as error:
            return JSONResponse({"problem": str(error)}, 404)
        return Response(data, 200, {"cache-control": "private, max-age=600"}, "image/jpeg")

    # The run is in the address only so that a browser keeps images of two runs apart.
    def whole(run: str, row: int) -> Response:
        return image(row, LARGEST_SIDE)

    def small(run: str, row: int) -> Response:
        return image(row, SMALL_SIDE)

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for kind in (TransduceError, OSError):
        app.add_exception_handler(kind, explain)
    app.add_api_route("/", page)
    app.add_api_route("/image/{run}/{row}", whole)
    app.add_api_route("/small/{run}/{row}", small)
    app.add_api_route("/state", session.state)
    app.add_api_route("/classes", lambda: session.labels)
    app.add_api_route("/groups", session.groups)
    app.add_api_route("/answers", session.answers)

    def post(path: str, kind: type[Body], act: Callable[[Body], dict[str, Any]]) -> None:
        async def handle(request: Request) -> JSONResponse:
            body = kind() if kind is Nothing else _decoded(await request.body(), kind)
            return JSONResponse(await run_in_threadpool(act, body))

        app.add_route(path, handle, methods=["POST"])

    post("/answer", Answer, lambda it: session.answer(it.row, it.label, same=it.same))
    post("/grid", Text, lambda it: session.grid(it.text))
    post("/grid-answer", GridAnswer, lambda it: session.answer_grid(it.right, it.wrong))
    post("/label", LabelForAll, lambda it: session.answer_all(it.rows, it.label, it.new_class))
    post("/search", Text, lambda it: session.search(it.text))
    post("/like", RowBody, lambda it: session.search_like(it.row))
    post("/again", RowBody, lambda it: session.ask_again(it.row))
    post("/only", Text, lambda it: session.ask_only(it.text))
    post("/undo", Nothing, lambda it: session.undo())
    post("/everything", Nothing, lambda it: session.ask_everything())
    post("/solve", Nothing, lambda it: session.solve())
    post("/undo-solve", Nothing, lambda it: session.undo_solve())
    return Gate(app, token, port, guests)


def _decoded(body: bytes, kind: type[Body]) -> Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise InvalidAnswer(f"Expected a request of this page, found trouble: {error}.") from None


def _status(error: Exception) -> int:
    if isinstance(error, InvalidAnswer):
        return 422
    if isinstance(error, NotSaved | OSError):
        return 507
    return 409


def _words(error: Exception) -> str:
    if isinstance(error, TransduceError):
        return str(error)
    return (
        f"The system refused: {error}. What was said to be saved is saved; make room or put the "
        "folder back, and try again."
    )


def _page(session: ReviewSession) -> tuple[str, str]:
    style = asset(PACKAGE, "review.css")
    script = Markup("").join(asset(PACKAGE, name) for name in SCRIPTS)
    more = {"img-src": "'self' data:", "connect-src": "'self'", "frame-ancestors": "'none'"}
    rules = security_policy(style, script, more)
    page = environment(PACKAGE).get_template("review.html")
    return page.render(session=session, style=style, script=script), rules


def serve_review(session: ReviewSession, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `announce` is called with the address once the port is ours."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("The review page") from None

    with _listen(port) as listener:
        bound = int(listener.getsockname()[1])
        token, guests = new_token(), Guests()
        app: Any = create_app(session, token=token, port=bound, guests=guests)
        # No access log: the token is in every line of it. No warnings: strangers would write them.
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            ws="none",
            http=protocol(guests),
            backlog=64,  # accepted at once: more could use up the file descriptors
        )
        announce(f"http://{ADDRESS}:{bound}/{token}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    """Return a socket that only this machine can reach; port 0 is any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name != "nt":  # there it would share the port with another program
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen()  # now, so that a browser that is quicker than the server waits
    except OSError as error:
        listener.close()
        raise PortTaken(
            f"Expected port {port} to be free, found {error.strerror}; choose another, or leave "
            "--port away for any free one."
        ) from None
    return listener
