"""Runs to be killed at random, again and again, and what must be so when they are resumed.

Each run is forked from a process that has imported everything (the imports have a test of their
own), with its workers as in any other run. Its descendants carry a mark, so that what is left of
them can be counted.
"""

import http.client
import json
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import fastapi  # noqa: F401 - imported once, before the runs are forked
import onnxruntime  # noqa: F401
import uvicorn  # noqa: F401
from joblib.externals.loky import get_reusable_executor

from tests.benchmark.small_features import run_suite, small_suite
from tests.benchmark.test_execute import timeless
from tests.features.stores import contents
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import encoded, picture, write_pictures
from tests.labeling.report.small_runs import small_run
from transduce.benchmark import execute as execution
from transduce.benchmark.evaluation import evaluate_chunk
from transduce.benchmark.executors import make_executor
from transduce.features.embedding import Resources, embed
from transduce.features.verification import verify_store
from transduce.labeling.inputs import Machine
from transduce.labeling.journal import Journal
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.report.page import write_report
from transduce.labeling.review.app import serve_review
from transduce.labeling.review.lock import only_review
from transduce.labeling.review.session import ReviewSession
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings
from transduce.machine.processes import family

MARK = "TRANSDUCE_CAMPAIGN"
KILLS_A_SEQUENCE = 10  # then it is left to end, and compared with an undisturbed run
NAMES = ("red circle", "blue star", "green square", "yellow heart")
SUITE = small_suite("em-dirichlet", "bd-cspn", tasks=200)


def context():
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.attacks.killing"])
    return made


def begin(mark, target, arguments, started):
    os.environ[MARK] = mark
    started.set()
    target(*arguments)


class Kind:
    """A kind of run: how it is made ready, run, and judged."""

    latest = 1.0  # seconds after which it is killed at the latest
    told = ()  # folders of the processes that it starts

    def __init__(self, folder):
        self.folder, self.out = Path(folder), None

    def fresh(self, number):
        """Begin a new sequence."""
        if self.out is not None:
            shutil.rmtree(self.out, ignore_errors=True)
        self.out = self.folder / f"out-{number}"

    def while_running(self, until):
        time.sleep(max(0.0, until - time.monotonic()))

    def after_kill(self):
        """Return what was lost."""
        return []


def embed_slowly(photos, out, delay):
    options = {"batch_size": 4, "shard_size": 8, "resources": Resources(workers=1)}
    embed(photos, TinyEncoder(delay=delay), out=out, **options)


class Embed(Kind):
    latest = 1.0

    def __init__(self, folder):
        super().__init__(folder)
        self.photos = write_pictures(self.folder / "photos", 160)
        for number in range(0, 160, 33):
            (self.photos / f"{number:05d}.jpg").write_bytes(encoded(picture(number))[:50])
        embed_slowly(self.photos, self.folder / "whole", 0.0)

    def fresh(self, number):
        super().fresh(number)
        self.done = set()

    def job(self, last):
        return embed_slowly, (self.photos, self.out, 0.0 if last else 0.01)

    def after_kill(self):
        before, self.done = self.done, set((self.out / "shards").glob("*.json"))
        return [str(path) for path in before - self.done]

    def judge(self):
        whole, made = contents(self.folder / "whole"), contents(self.out)
        different = [name for name in whole if whole[name] != made.get(name)]
        different += [name for name in made if name not in whole]
        return different + [str(path) for path in self.out.rglob("*.tmp")]


def label_photos(photos, out):
    settings = LabelSettings(source=str(photos), classes=NAMES, prompts=NAMES, encoder="shapes")
    machine = Machine(batch_size=4, resources=Resources(workers=1))
    run_labeling(settings, out, resume=True, machine=machine, complete=write_report)


class Label(Kind):
    def __init__(self, folder):
        super().__init__(folder)
        self.photos = write_pictures(self.folder / "photos", 40)
        label_photos(self.photos, self.folder / "warm")
        start = time.monotonic()
        label_photos(self.photos, self.folder / "whole")
        self.latest = 1.2 * (time.monotonic() - start)  # up to its end, on this machine
        self.whole = contents(self.folder / "whole" / "transduce-001")

    def job(self, last):
        return label_photos, (self.photos, self.out)

    def judge(self):
        runs = sorted(self.out.iterdir())
        wrong = [str(run) for run in runs if run.name.startswith(".")]
        for run in runs:
            made = contents(run)
            names = set(self.whole) | set(made)
            timed = {"summary.json", "report.html", "features/meta.json"}  # seconds, its own name
            wrong += [f"{run.name}/{n}" for n in names - timed if made.get(n) != self.whole.get(n)]
            wrong += [f"{run.name}/{n}" for n in timed if n not in made]
            wrong += list(verify_store(run / "features").problems)
        return wrong


def review_run(folder, addresses):
    run = RunDirectory.load(folder)
    with only_review(run.folder):
        serve_review(ReviewSession(run, everything=True), 0, addresses.put)


class Review(Kind):
    latest = 1.0

    def __init__(self, folder):
        super().__init__(folder)
        self.addresses = context().SimpleQueue()

    def fresh(self, number):
        super().fresh(number)
        run = small_run(self.out, images=6, probabilities=[[0.4, 0.35, 0.25]] * 6)
        self.run, self.said, self.count = run, {}, 0

    def job(self, last):
        return review_run, (self.run.folder, self.addresses)

    def while_running(self, until):
        """Answer as fast as it goes; what is acknowledged is remembered."""
        address = urlsplit(self.addresses.get())
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
        end = time.monotonic() + (until - time.monotonic()) % 0.4
        labels = self.run.classes.labels
        while time.monotonic() < end:
            row, label = self.count % 6, labels[self.count % len(labels)]
            body = json.dumps({"row": row, "label": label})
            connection.request("POST", f"{address.path}answer", body, {"host": address.netloc})
            self.asked = (self.run.labels.file_name[row], label)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                self.said[self.asked[0]] = label
                self.count += 1
        connection.close()

    def after_kill(self):
        saved = Journal.open(self.run.folder).review
        return [f"{name}: {label}" for name, label in self.said.items() if saved.get(name) != label]

    def judge(self):
        made = (self.run.folder / "reviewed.csv").exists() or not self.said
        return self.after_kill() + ([] if made else ["reviewed.csv"])


def slow(features, chunk):
    time.sleep(0.02)
    return evaluate_chunk(features, chunk)


def bench(kind, out, folders):
    execution.evaluate_chunk = slow
    executor = make_executor(kind, workers=2)
    if kind == "ray":
        node = executor._cluster.ray._private.worker._global_node
        Path(folders).write_text(node.get_session_dir_path())
    run_suite(SUITE, out, executor)
    executor.close()
    if kind == "joblib":  # a forked process leaves without what the interpreter does at its end
        get_reusable_executor().shutdown(wait=True)


class Joblib(Kind):
    latest, executor = 4.0, "joblib"

    def __init__(self, folder):
        super().__init__(folder)
        run_suite(SUITE, self.folder / "whole")

    def job(self, last):
        return bench, (self.executor, self.out, self.folder / "folders")

    @property
    def told(self):
        named = self.folder / "folders"
        return [os.fsencode(named.read_text())] if named.exists() else []

    def judge(self):
        made, whole = timeless(self.out), timeless(self.folder / "whole")
        for result in (*made.values(), *whole.values()):
            result.pop("machine")  # names the executor
        same = made == whole
        return ([] if same else ["runs"]) + [str(path) for path in self.out.rglob("*.tmp")]


class Ray(Joblib):
    latest, executor = 9.0, "ray"


RUNS = {"embed": Embed, "label": Label, "review": Review, "bench joblib": Joblib, "bench ray": Ray}


def kill_often(name, folder, kills, seed=0):
    """Kill runs of a kind so often; returns the counts of what went wrong."""
    kind, made, chance = RUNS[name](folder), context(), random.Random(f"{name} {seed}")
    counts = {"kills": 0, "finished": 0, "sequences": 0, "lost": [], "orphans": [], "hangs": []}
    while counts["kills"] < kills:
        kind.fresh(counts["sequences"])
        in_sequence = 0
        while in_sequence < KILLS_A_SEQUENCE and counts["kills"] < kills:
            killed = _one(kind, made, chance.uniform(0.0, kind.latest), counts, last=False)
            in_sequence += killed
        _finish(kind, made, counts)
        counts["sequences"] += 1
    return counts


def _one(kind, made, pause, counts, *, last):
    """Start a run and kill it after a while; returns whether it still ran."""
    mark = f"{random.SystemRandom().getrandbits(64):x}"
    started = made.Event()
    target, arguments = kind.job(last)
    process = made.Process(target=begin, args=(mark, target, arguments, started))
    process.start()
    assert started.wait(60)
    kind.while_running(time.monotonic() + pause)
    alive = process.is_alive()
    if alive:
        process.kill()
    process.join()
    counts["kills" if alive else "finished"] += 1
    if not alive and process.exitcode != 0:
        counts["lost"].append(f"{type(kind).__name__} ended with {process.exitcode}")
    counts["orphans"] += _left(mark, kind.told)
    counts["lost"] += kind.after_kill()
    return alive


def _left(mark, folders, patience=20.0):
    """Return the descendants that still live after a while; there must be none."""
    end = time.monotonic() + patience
    while left := [*family(f"{MARK}={mark}".encode(), folders)]:
        if time.monotonic() > end:
            return [f"process {number}" for number in left]
        time.sleep(0.02)
    return []


def _finish(kind, made, counts):
    """Let the run end, and compare it with an undisturbed one."""
    if isinstance(kind, Review):
        counts["lost"] += kind.judge()
        return
    target, arguments = kind.job(True)
    started = made.Event()
    process = made.Process(target=begin, args=("last", target, arguments, started))
    process.start()
    process.join(120)
    if process.is_alive():
        process.kill()
        counts["hangs"].append(type(kind).__name__)
    elif process.exitcode != 0:
        counts["lost"].append(f"the last run ended with {process.exitcode}")
    counts["lost"] += kind.judge()
