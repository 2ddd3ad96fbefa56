"""What every executor promises: each job once, in any order, also if a worker is killed."""

import os
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.benchmark.small_features import small_features, small_run
from transduce.benchmark.evaluation import Chunk, Records, evaluate_chunk
from transduce.benchmark.executors import EXECUTORS, make_executor
from transduce.errors import InvalidSetting, MissingExtra, UnknownName, WorkerFailed

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:ray"),
    # Told when a worker is killed, which some of these tests do.
    pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning"),
    pytest.mark.filterwarnings("ignore:resource_tracker:UserWarning"),
]


@pytest.fixture(scope="module")
def executors():
    """One of each for all tests: Ray takes seconds to start."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray

    folders = (Path.cwd() / "src", Path.cwd(), "tests")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100_000_000,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(map(str, folders))}},
    )
    made = {name: make_executor(name, workers=2) for name in EXECUTORS}
    yield made
    for executor in made.values():
        executor.close()
    ray.shutdown()


@dataclass(frozen=True)
class Trap:
    """A job that kills its process, the first time or every time."""

    number: int
    flag: Path | None = None
    always: bool = False


def spring(features, trap):
    if trap.always:
        os.kill(os.getpid(), signal.SIGKILL)
    if trap.flag is not None and not trap.flag.exists():
        trap.flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return trap.number


def writable(features, job):
    return os.getpid(), features.split("test").embeddings.flags.writeable


def fail(features, job):
    raise InvalidSetting("Expected nothing.")


@pytest.mark.parametrize("name", EXECUTORS)
def test_gives_the_answers_of_the_work_itself(executors, name):
    features = small_features()
    run = small_run()
    jobs = [Chunk(run, run.build(), start, start + 5) for start in range(0, 60, 5)]
    expected = [evaluate_chunk(features, job) for job in jobs]
    outcomes = dict(executors[name].run(evaluate_chunk, features, jobs))
    assert sorted(outcomes) == list(range(len(jobs)))
    for index, records in enumerate(expected):
        for name in set(records.columns) - {"seconds"}:
            assert outcomes[index].columns[name] == records.columns[name]


@pytest.mark.parametrize("name", EXECUTORS)
def test_no_jobs_are_no_outcomes(executors, name):
    assert list(executors[name].run(evaluate_chunk, small_features(), [])) == []


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_error_of_the_work_arrives(executors, name):
    with pytest.raises(InvalidSetting, match="Expected nothing"):
        list(executors[name].run(fail, small_features(), [1, 2]))


@pytest.mark.parametrize("name", ["joblib", "ray"])
def test_features_are_mapped_not_copied(executors, name):
    """Both hand out read-only views of memory that all workers share."""
    features = small_features(images=3000)
    assert features.split("test").embeddings.nbytes > 2**20
    seen = [outcome for _, outcome in executors[name].run(writable, features, range(8))]
    assert all(pid != os.getpid() for pid, _ in seen)
    assert not any(own for _, own in seen)


@pytest.mark.parametrize("name", ["joblib", "ray"])
def test_a_killed_workers_jobs_are_run_again_and_counted_once(executors, name, tmp_path):
    jobs = [Trap(number, tmp_path / "flag" if number == 3 else None) for number in range(12)]
    outcomes = list(executors[name].run(spring, small_features(), jobs))
    assert (tmp_path / "flag").exists()
    assert Counter(place for place, _ in outcomes) == Counter(range(12))
    assert all(place == number for place, number in outcomes)


def test_a_job_that_always_kills_is_given_up():
    executor = make_executor("joblib", workers=2)  # one would be this very process
    with pytest.raises(WorkerFailed, match="too little memory"):
        list(executor.run(spring, small_features(), [Trap(0), Trap(1, always=True)]))
    assert dict(executor.run(spring, small_features(), [Trap(7)])) == {0: 7}


def test_evaluation_does_not_depend_on_how_tasks_are_cut():
    features, run = small_features(), small_run()
    whole = evaluate_chunk(features, Chunk(run, run.build(), 0, 10))
    chunks = [Chunk(run, run.build(), start, start + 5) for start in (0, 5)]
    parts = Records.join([evaluate_chunk(features, chunk) for chunk in chunks])
    assert parts.columns["correct"] == whole.columns["correct"]


def test_similarities_are_the_cosines():
    from transduce.benchmark.evaluation import episode

    features = small_features()
    cosines = episode(features, small_run(space="similarity"), 0).task
    vectors = episode(features, small_run(space="embedding"), 0).task
    np.testing.assert_allclose(cosines.query, vectors.query @ vectors.class_embeddings.T)
    np.testing.assert_array_equal(cosines.zero_shot, vectors.zero_shot)


def test_unknown_and_impossible_executors_are_refused(monkeypatch):
    with pytest.raises(UnknownName, match="did you mean 'joblib'"):
        make_executor("jobli")
    with pytest.raises(InvalidSetting, match="--address with the ray executor"):
        make_executor("joblib", address="localhost:1")
    with pytest.raises(InvalidSetting, match="found -1"):
        make_executor("joblib", workers=-1)
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # as it is in the tests above
    with pytest.raises(InvalidSetting, match=r"at localhost:1, found none .*another --executor"):
        make_executor("ray", address="localhost:1")
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[ray\]"'):
        make_executor("ray")
