"""The same store from a local Ray; one session, since it takes seconds to start."""

import sys
from pathlib import Path

import pytest

from tests.features.stores import assert_same_store
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import write_pictures
from transduce.errors import InvalidSetting, MissingExtra
from transduce.features.extraction import Resources, execute, extract, settings_for
from transduce.features.layout import record_name
from transduce.features.planning import lock, prepare
from transduce.features.ray_executor import on_ray
from transduce.images.sources import find_images

SETTINGS = settings_for(batch_size=4)


@pytest.fixture
def local_ray():
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100_000_000,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path.cwd())}},
    )
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore::Warning:ray")
def test_ray_and_local_write_the_same_bytes(local_ray, tmp_path):
    photos = write_pictures(tmp_path / "photos", 40)
    (photos / "00009.jpg").write_bytes(b"")
    resources = Resources(workers=1)
    extract(
        str(photos), tmp_path / "local", TinyEncoder(),
        settings=SETTINGS, resources=resources, shard_size=8,
    )  # fmt: skip
    out = tmp_path / "ray"
    with lock(out):
        plan = prepare(
            find_images(str(photos)), out, TinyEncoder().identity, SETTINGS, shard_size=8
        )
        settled = []
        execute(plan, on_ray(TinyEncoder, actors=2), resources, settled.append)
    assert_same_store(tmp_path / "local", out)
    assert sum(settled) == 40

    (out / record_name(2)).unlink()  # as if it had been stopped there
    with lock(out):
        plan = prepare(
            find_images(str(photos)), out, TinyEncoder().identity, SETTINGS, shard_size=8
        )
        assert plan.pending == (2,)
        execute(plan, on_ray(TinyEncoder, actors=2), resources, settled.append)
    assert_same_store(tmp_path / "local", out)


def test_missing_ray_is_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[ray\]"'):
        on_ray(TinyEncoder)


def test_no_actors_is_refused():
    with pytest.raises(InvalidSetting, match="at least one actor"):
        on_ray(TinyEncoder, actors=0)
