"""A batch on a local Ray has the answer of this process, also after a worker died."""

import os
import signal
from functools import partial

import numpy as np
import pytest

from tests.features.stores import assert_same_store
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import write_pictures
from tests.labeling.stores import NAMES, write_simulated
from transduce.features import planning, ray_executor
from transduce.features.store import FeatureStore
from transduce.labeling.executors import RayPasses
from transduce.labeling.inputs import Machine
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import LabelSettings
from transduce.labeling.solving import rows as stored_rows
from transduce.labeling.solving.rows import batch_rows
from transduce.machine.cluster import Cluster
from transduce.methods import METHODS
from transduce.methods.anchored import Anchored, cells
from transduce.methods.anchored import batch as anchored_batch
from transduce.methods.anchored import passes as anchored_passes
from transduce.methods.large_mixture import ZeroShotRows, solve_mixture
from transduce.mixtures import expectation
from transduce.mixtures import queries as mixture_queries
from transduce.simplex.passes import chunks_of

pytestmark = pytest.mark.filterwarnings("ignore::Warning:ray")


@pytest.fixture
def in_small_chunks(monkeypatch):
    """Twelve chunks, neighbors from cells, rows that stay on disk."""
    monkeypatch.setattr(anchored_batch, "chunks_of", lambda size: chunks_of(size, 32))
    monkeypatch.setattr(mixture_queries, "chunks_of", lambda size: chunks_of(size, 32))
    monkeypatch.setattr(cells, "EXACT_UP_TO", 0)
    monkeypatch.setattr(cells, "CELL_ROWS", 40)
    monkeypatch.setattr(stored_rows, "KEPT_BYTES", 0)


def die_once(mark, work, batch, shared, chunk):
    """Kill the process that this runs in, the first time."""
    if chunk.start and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(batch, shared, chunk)


def test_workers_have_the_answer_of_this_process_and_so_has_one_that_died(
    local_ray, in_small_chunks, tmp_path
):
    write_simulated(tmp_path / "store", images=300, present=[1, 4, 7])
    store = FeatureStore.open(tmp_path / "store")
    rows = batch_rows(store, None, np.arange(len(store)))
    texts = np.load(tmp_path / "store" / "texts.npz")["embeddings"]
    alone = Anchored().solve(rows, texts)
    assert len(anchored_batch.chunks_of(300)) == 12
    for workers in (1, 2):
        with Cluster(workers) as cluster:
            passes = RayPasses(cluster)
            mark = tmp_path / f"killed by {workers}"

            def killing(work, batch, shared, chunks, passes=passes, mark=mark, workers=workers):
                dying = workers == 2 and work is anchored_passes.assign_chunk
                yield from passes(
                    partial(die_once, mark, work) if dying else work, batch, shared, chunks
                )

            answer = Anchored().solve(rows, texts, passes=killing)
        assert mark.exists() == (workers == 2)
        np.testing.assert_array_equal(answer.classes, alone.classes)
        np.testing.assert_array_equal(answer.probabilities, alone.probabilities)
        assert answer.trace == alone.trace


def test_label_on_ray_writes_the_labels_of_this_process(local_ray, in_small_chunks, tmp_path):
    write_simulated(tmp_path / "store", images=120)
    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, features=str(tmp_path / "store"), encoder=""
    )
    alone = run_labeling(settings, tmp_path / "out")
    there = run_labeling(settings, tmp_path / "out", machine=Machine(ray=True))
    np.testing.assert_array_equal(there.labels.label, alone.labels.label)
    np.testing.assert_array_equal(there.probabilities(), alone.probabilities())


@pytest.mark.parametrize("name", ["em-dirichlet", "hard-em-dirichlet"])
def test_a_mixture_on_ray_is_equal_to_the_bit_also_after_a_worker_died(
    name, local_ray, in_small_chunks, tmp_path
):
    write_simulated(tmp_path / "store", images=300, present=[1, 4, 7])
    store = FeatureStore.open(tmp_path / "store")
    texts = np.load(tmp_path / "store" / "texts.npz")["embeddings"].astype(np.float32)
    images = batch_rows(store, None, np.arange(len(store)))
    queries = ZeroShotRows(images, texts, 30.0)
    method = METHODS[name](classes_present=3)
    alone, kept = solve_mixture(method, queries), solve_mixture(method, queries.kept())
    mark = tmp_path / "killed"
    with Cluster(2) as cluster:
        passes = RayPasses(cluster)

        def killing(work, batch, shared, chunks):
            dying = work is expectation.assign_and_sum
            yield from passes(
                partial(die_once, mark, work) if dying else work, batch, shared, chunks
            )

        there = solve_mixture(method, queries, passes=killing)
        reported = np.concatenate(list(there.tempered(np.copy, passes)))
    assert mark.exists()
    for other in (kept, there):
        assert other.trace == alone.trace
        np.testing.assert_array_equal(other.clusters, alone.clusters)
        np.testing.assert_array_equal(other.model.parameters, alone.model.parameters)
    np.testing.assert_array_equal(reported, np.concatenate(list(alone.tempered(np.copy))))


def test_label_on_ray_embeds_there_too(local_ray, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "FEWEST_ROWS", 8)
    photos = write_pictures(tmp_path / "photos", 16)
    (photos / "00009.jpg").write_bytes(b"")
    seen = []
    monkeypatch.setattr(
        ray_executor.RayShards, "__call__", watched(ray_executor.RayShards.__call__, seen)
    )
    # One encoder is loaded where it works, the other is given and goes there as it is.
    settings = LabelSettings(
        source="photos",
        folder=str(tmp_path),
        classes=("red", "blue"),
        prompts=("red", "blue"),
        encoder="shapes",
        view="tiny",
    )
    runs = [
        run_labeling(
            settings,
            tmp_path / "out",
            view_encoder=TinyEncoder(),
            machine=Machine(ray=ray, batch_size=8),
        )
        for ray in (False, True)
    ]
    assert seen == [(2, 2)]  # both stores in one pass over the files
    for store in ("features", "view"):
        assert_same_store(*(run.folder / store for run in runs))
    np.testing.assert_array_equal(runs[0].labels.label, runs[1].labels.label)


def watched(call, seen):
    """The same with the number of stores and of shards written down."""

    def watching(self, targets, shards, resources, progress):
        seen.append((len(targets), len(shards)))
        return call(self, targets, shards, resources, progress)

    return watching
