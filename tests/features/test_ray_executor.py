"""The same store from a local Ray; one session, since it takes seconds to start."""

import sys
from contextlib import nullcontext

import pytest

from tests.features.stores import assert_same_store
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import write_pictures
from transduce.errors import InvalidSetting, MissingExtra
from transduce.features.embedding import Resources, embed
from transduce.features.layout import record_name
from transduce.features.ray_executor import on_ray
from transduce.machine.cluster import Cluster


@pytest.mark.filterwarnings("ignore::Warning:ray")
def test_ray_and_local_write_the_same_bytes(local_ray, tmp_path):
    photos = write_pictures(tmp_path / "photos", 40)
    (photos / "00009.jpg").write_bytes(b"")
    settled, pending = [], []

    def watch(plan):
        pending.append(plan.pending)
        return nullcontext(settled.append)

    def run(out, executor=None):
        embed(
            photos,
            TinyEncoder(),
            out=out,
            batch_size=4,
            shard_size=8,
            resources=Resources(workers=1),
            executor=executor,
            watch=watch,
        )

    run(tmp_path / "local")
    settled.clear()
    out = tmp_path / "ray"
    run(out, on_ray(TinyEncoder, actors=2))
    assert_same_store(tmp_path / "local", out)
    assert sum(settled) == 40

    (out / record_name(2)).unlink()  # as if it had been stopped there
    run(out, on_ray(TinyEncoder, actors=2))
    assert pending[-1] == (2,)
    assert_same_store(tmp_path / "local", out)
    assert local_ray.is_initialized()  # not ours to end


@pytest.mark.filterwarnings("ignore::Warning:ray")
def test_outcomes_in_order_or_as_completed(local_ray):
    with Cluster(workers=2) as cluster:
        jobs = list(range(20))
        lanes = cluster.tasks(add, 100)
        assert list(cluster.run(lanes, jobs, in_order=True)) == [(j, 100 + j) for j in jobs]
        assert sorted(cluster.run(lanes, jobs)) == [(j, 100 + j) for j in jobs]
        assert list(cluster.run(lanes, [])) == []
    assert local_ray.is_initialized()


def add(shared, job):
    return shared + job


def test_missing_ray_is_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[ray\]"'):
        on_ray(TinyEncoder)


def test_no_actors_is_refused():
    with pytest.raises(InvalidSetting, match="at least one actor"):
        on_ray(TinyEncoder, actors=0)
