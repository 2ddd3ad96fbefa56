"""From a suite to its results: resumed, sharded, skipped, refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmark.small_features import load, small_features, small_run, small_suite
from transduce.benchmark import tuning
from transduce.benchmark.evaluation import CHUNK
from transduce.benchmark.execute import chunk_numbers, execute, found_results, runs_by_features
from transduce.benchmark.executors import make_executor
from transduce.benchmark.results import ResultFolder, Shard
from transduce.errors import InvalidFile, InvalidSetting, InvalidStore, MissingData
from transduce.features.planning import lock

SERIAL = make_executor("serial")


def timeless(folder: Path) -> dict[str, dict]:
    """All results below a folder, without what may differ: times."""
    found = {}
    for path in (folder / "runs").glob("*.json"):
        value = json.loads(path.read_text())
        value["tasks"].pop("seconds")
        value.pop("seconds_per_task")
        found[path.name] = value
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The small suite, run without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    execute(small_suite(), folder, SERIAL, load)
    return timeless(folder)


def test_a_result_says_everything(whole):
    assert len(whole) == 5  # paddle has no zero-shot run
    value = next(v for v in whole.values() if v["run"]["method"] == "paddle")
    assert len(value["tasks"]["correct"]) == 60
    assert 0 < value["interval"] < value["accuracy"] < 1
    assert value["run"]["seed"] == 5
    assert {"python", "numpy", "transduce"} <= set(value["versions"])
    assert value["machine"]["executor"] == "serial"
    assert value["settings"]["penalty"] == value["tuning"]["chosen"]["penalty"]


def test_what_is_there_is_read_and_not_repeated(tmp_path):
    first = execute(small_suite(), tmp_path, SERIAL, load)
    assert first.computed == 300

    def never(*what):
        raise AssertionError("no features are needed")

    again = execute(small_suite(), tmp_path, SERIAL, never)
    assert again.computed == 0
    assert again.results == first.results
    assert found_results(small_suite(), tmp_path).results == first.results
    assert execute(small_suite(), tmp_path, SERIAL, load, fresh=True).computed == 300


def test_a_stopped_run_goes_on_after_its_last_part(tmp_path, whole):
    class Stop(Exception):
        pass

    done = []

    def stop(tasks):
        done.append(tasks)
        if sum(done) > 100:
            raise Stop

    with pytest.raises(Stop):
        execute(small_suite(), tmp_path, SERIAL, load, advance=stop)
    rest = execute(small_suite(), tmp_path, SERIAL, load)
    assert 0 < rest.computed < 300
    assert timeless(tmp_path) == whole
    assert not list(tmp_path.glob("work/parts/*"))


@pytest.mark.parametrize("total", [2, 16])
def test_shards_merge_to_exactly_the_whole_run(tmp_path, whole, total):
    computed = 0
    for number in range(1, total + 1):
        outcome = execute(small_suite(), tmp_path, SERIAL, load, shard=Shard(number, total))
        assert not outcome.results
        computed += outcome.computed
    assert computed == 300
    merged = execute(small_suite(), tmp_path, SERIAL, load)
    assert merged.computed == 0
    assert timeless(tmp_path) == whole


def test_shards_share_all_chunks_and_none_twice():
    numbers = chunk_numbers(small_suite(tasks=10 * CHUNK))
    assert sorted(numbers.values()) == list(range(len(numbers)))
    shares = [{c for c in numbers.values() if Shard(n, 3).has(c)} for n in (1, 2, 3)]
    assert set.union(*shares) == set(numbers.values())
    assert sum(map(len, shares)) == len(numbers)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/3"])
def test_impossible_shards_are_refused(text):
    with pytest.raises(InvalidSetting, match="such as 3/16"):
        Shard.parse(text)


def test_a_second_run_in_the_same_folder_is_kept_out(tmp_path):
    with lock(tmp_path / "work"), pytest.raises(InvalidStore, match="another run"):
        execute(small_suite(), tmp_path, SERIAL, load)


def test_damaged_results_are_named(tmp_path):
    suite = small_suite("zero-shot")
    execute(suite, tmp_path, SERIAL, load)
    path = next((tmp_path / "runs").glob("*.json"))
    good = path.read_text()
    for bad, words in [
        (good[:200], "Expected JSON"), ("{}", "without run"),
        (good.replace('"correct":[', '"correct":[1,'), "different lengths"),
        (good.replace('"seed":5', '"seed":6'), "found another"),
    ]:  # fmt: skip
        path.write_text(bad)
        with pytest.raises(InvalidFile, match=words):
            execute(suite, tmp_path, SERIAL, load)
    path.unlink()
    assert execute(suite, tmp_path, SERIAL, load).computed == 60


def test_parts_of_different_settings_are_never_mixed(tmp_path):
    suite = small_suite("zero-shot")
    execute(suite, tmp_path, SERIAL, load, shard=Shard(1, 2))
    path = next(tmp_path.glob("work-1-of-2/parts/*/*.json"))
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"settings": {"penalty": 3.0}}))
    with pytest.raises(InvalidFile, match="same settings"):
        execute(suite, tmp_path, SERIAL, load)


def test_missing_data_is_a_reason_and_the_rest_goes_on(tmp_path):
    def some(dataset, encoder, splits):
        if dataset == "lost":
            raise MissingData("Expected lost, found nothing.")
        return load(dataset, encoder, splits)

    suite = small_suite("zero-shot", datasets=("small", "lost"))
    outcome = execute(suite, tmp_path, SERIAL, some)
    assert len(outcome.results) == 2
    assert set(outcome.reasons.values()) == {"Expected lost, found nothing."}


def test_too_few_images_are_a_reason_with_the_numbers(tmp_path):
    def few(dataset, encoder, splits):
        return small_features(images=3)

    outcome = execute(small_suite("zero-shot"), tmp_path, SERIAL, few)
    assert any("found fewer of 6, such as 3" in reason for reason in outcome.reasons.values())


def test_only_the_splits_that_are_needed_are_asked_for(tmp_path):
    asked = []

    def note(dataset, encoder, splits):
        asked.append(splits)
        return load(dataset, encoder, splits)

    suite = small_suite("zero-shot", "paddle")
    execute(replace(suite, tables=suite.tables[:1]), tmp_path, SERIAL, note)
    execute(replace(suite, tables=suite.tables[1:]), tmp_path, SERIAL, note)
    assert asked == [{"test"}, {"test", "train", "val"}]


def test_every_run_of_a_column_is_loaded_once():
    groups = runs_by_features(small_suite(datasets=("b", "a")))
    assert [features for features, _ in groups] == [("a", "tiny"), ("b", "tiny")]


def tuned(run, features):
    seen = []

    def evaluate(chunks):
        seen.extend(chunks)
        return [tuning_evaluate(features, chunk) for chunk in chunks]

    from transduce.benchmark.evaluation import evaluate as tuning_evaluate

    return tuning.tune(run, features, evaluate), seen


PADDLE = small_run(method="paddle", protocol=small_suite().tables[1].protocol, tuned=True)


def test_tuning_never_sees_a_test_image():
    found, chunks = tuned(PADDLE, small_features())
    assert {(c.run.query_split, c.run.support_split) for c in chunks} == {("val", "val")}
    assert {c.stop for c in chunks} == {5}
    assert len(chunks) == len(found["candidates"]) == 9
    best = max(found["candidates"], key=lambda one: one["accuracy"])
    assert found["chosen"] == best["settings"]


def test_shots_come_from_training_where_validation_has_too_few():
    features = small_features()
    small = small_features(images=4, splits=["val"])
    features = replace(features, splits={**features.splits, "val": small.split("val")})
    _, chunks = tuned(PADDLE, features)
    assert {(c.run.query_split, c.run.support_split) for c in chunks} == {("val", "train")}


def test_without_validation_images_training_ones_stand_in_and_test_ones_never():
    _, chunks = tuned(PADDLE, small_features(splits=("train", "test")))
    assert {(c.run.query_split, c.run.support_split) for c in chunks} == {("train", "train")}
    from_test = replace(PADDLE, support_split="test")
    found, chunks = tuned(from_test, small_features(splits=("test",)))
    assert not chunks
    assert found["chosen"] == {"penalty": 5 / 75}
    assert "not tuned" in found["reason"]


def test_settings_of_the_run_are_not_tuned():
    run = replace(PADDLE, settings=(("penalty", 0.3),))
    assert tuning.candidates(run) == [{}]


def test_the_tuned_choice_is_kept_for_other_numbers_of_tasks(tmp_path):
    folder = ResultFolder(tmp_path)
    execute(small_suite("paddle"), tmp_path, SERIAL, load)
    key = tuning.tuning_key(small_run(method="paddle", protocol=PADDLE.protocol, tuned=True))
    assert folder.read_tuning(key) is not None
    assert tuning.tuning_key(replace(PADDLE, tasks=1000)) == key
