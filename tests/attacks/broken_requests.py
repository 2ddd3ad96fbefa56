"""Broken requests to the review server."""

import json

from tests.attacks.mutations import mutated, tree
from tests.labeling.report.small_runs import small_run
from tests.labeling.review.asking import Client
from transduce.labeling.review.app import create_app
from transduce.labeling.review.session import ReviewSession

PATHS = (
    "answer",
    "grid",
    "grid-answer",
    "label",
    "search",
    "like",
    "again",
    "only",
    "undo",
    "everything",
    "image/x/",
    "small/x/",
    "state",
    "classes",
    "groups",
    "answers",
)
TOKEN, PORT = "the-token", 4321


def http(folder):
    run = small_run(folder, images=6)
    client = Client(create_app(ReviewSession(run), token=TOKEN, port=PORT), f"127.0.0.1:{PORT}")

    def attempt(chance):
        path = chance.choice(PATHS)
        if path.endswith("/") or chance.random() < 0.1:
            row = chance.choice(["0", "-1", "99", "x", "%00", "1e9", "..%2f..", "9" * 50, ""])
            answer = client.get(f"/{chance.choice([TOKEN, 'wrong'])}/{path}{row}")
        else:
            rows = [chance.choice([0, 1, -1, 99, 1.5, True, None, "0", 10**30]) for _ in range(2)]
            body = {
                "row": rows[0],
                "label": tree(chance),
                "text": tree(chance),
                "rows": rows,
                "right": rows,
                "wrong": rows,
                "same": tree(chance),
            }
            data = json.dumps(body).encode("utf-8", "surrogatepass")
            data = mutated(data, chance) if chance.random() < 0.5 else data
            answer = client.post_bytes(f"/{TOKEN}/{path}", data)
        assert answer.status < 500, (path, answer.status, answer.text[:300])
        return "" if answer.status < 400 else f"Expected another request, found {answer.status}"

    return attempt
