"""The web application of a review, and how it is served: on this machine, to one browser."""

import os
import socket
from collections.abc import Callable
from typing import Annotated, Any

from transduce.errors import InvalidAnswer, MissingExtra, PortTaken, TransduceError
from transduce.images.decoding import Unreadable
from transduce.labeling.report.page import asset, environment, security_policy
from transduce.labeling.review.gate import ADDRESS, Application, Gate, new_token
from transduce.labeling.review.session import ReviewSession, State

LARGEST_SIDE = 1000  # pixels; an image on the screen need not be larger
PACKAGE = "transduce.labeling.review"


def create_app(session: ReviewSession, *, token: str, port: int) -> Application:
    """Return the application behind its gate; every path begins with the token."""
    try:
        from fastapi import Body, FastAPI, Request
        from fastapi.responses import HTMLResponse, JSONResponse, Response
    except ImportError:
        raise MissingExtra("The review page", "app") from None

    def explain(request: Request, error: TransduceError) -> JSONResponse:
        status = 422 if isinstance(error, InvalidAnswer) else 409
        return JSONResponse({"problem": str(error)}, status)

    def page() -> HTMLResponse:
        text, rules = _page(session)
        return HTMLResponse(text, headers={"content-security-policy": rules})

    def image(run: str, row: int) -> Response:
        # The run is in the address only so that a browser keeps images of two runs apart.
        try:
            data = session.jpeg(row, LARGEST_SIDE)
        except Unreadable as error:
            return JSONResponse({"problem": str(error)}, 404)
        return Response(data, 200, {"cache-control": "private, max-age=600"}, "image/jpeg")

    def answer(row: Annotated[int, Body()], label: Annotated[str | None, Body()]) -> State:
        return session.answer(row, label)

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_exception_handler(TransduceError, explain)
    app.add_api_route("/", page)
    app.add_api_route("/image/{run}/{row}", image)
    app.add_api_route("/state", session.state)
    app.add_api_route("/answer", answer, methods=["POST"])
    app.add_api_route("/undo", session.undo, methods=["POST"])
    app.add_api_route("/everything", session.ask_everything, methods=["POST"])
    app.add_api_route("/solve", session.solve, methods=["POST"])
    return Gate(app, token, port)


def _page(session: ReviewSession) -> tuple[str, str]:
    style, script = asset(PACKAGE, "review.css"), asset(PACKAGE, "review.js")
    more = {"img-src": "'self' data:", "connect-src": "'self'", "frame-ancestors": "'none'"}
    rules = security_policy(style, script, more)
    page = environment(PACKAGE).get_template("review.html")
    return page.render(session=session, style=style, script=script), rules


def serve_review(session: ReviewSession, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `announce` is called with the address once the port is ours."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("The review page", "app") from None

    with _listen(port) as listener:
        bound = int(listener.getsockname()[1])
        token = new_token()
        app: Any = create_app(session, token=token, port=bound)
        # No access log: the token is in every line of it.
        config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none")
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
