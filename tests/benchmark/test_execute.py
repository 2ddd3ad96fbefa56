"""From a suite to its results: resumed, sharded, skipped, refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmark.small_features import load, run_suite, small_features, small_run, small_suite
from transduce.benchmark import tuning
from transduce.benchmark.evaluation import CHUNK
from transduce.benchmark.execute import stored_results
from transduce.benchmark.plan import plan_suite
from transduce.benchmark.results import ResultFolder, SuiteShard
from transduce.errors import InvalidFile, InvalidSetting, InvalidStore, MissingData
from transduce.features.planning import lock


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
    run_suite(small_suite(), folder)
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
    first = run_suite(small_suite(), tmp_path)
    assert first.computed == 300

    def never(*what):
        raise AssertionError("no features are needed")

    again = run_suite(small_suite(), tmp_path, load_features=never)
    assert again.computed == 0
    assert again.results == first.results
    assert stored_results(plan_suite(small_suite()), tmp_path).results == first.results
    assert run_suite(small_suite(), tmp_path, fresh=True).computed == 300


def test_a_stopped_run_goes_on_after_its_last_part(tmp_path, whole):
    class Stop(Exception):
        pass

    done = []

    def stop(tasks):
        done.append(tasks)
        if sum(done) > 100:
            raise Stop

    with pytest.raises(Stop):
        run_suite(small_suite(), tmp_path, advance=stop)
    rest = run_suite(small_suite(), tmp_path)
    assert 0 < rest.computed < 300
    assert timeless(tmp_path) == whole
    assert not list(tmp_path.glob("work/parts/*"))


@pytest.mark.parametrize("total", [2, 16])
def test_shards_merge_to_exactly_the_whole_run(tmp_path, whole, total):
    computed = 0
    for number in range(1, total + 1):
        outcome = run_suite(small_suite(), tmp_path, shard=SuiteShard(number, total))
        assert not outcome.results
        computed += outcome.computed
    assert computed == 300
    merged = run_suite(small_suite(), tmp_path)
    assert merged.computed == 0
    assert timeless(tmp_path) == whole


def test_shards_share_all_chunks_and_none_twice():
    numbers = plan_suite(small_suite(tasks=10 * CHUNK)).chunk_numbers
    assert sorted(numbers.values()) == list(range(len(numbers)))
    shares = [{c for c in numbers.values() if SuiteShard(n, 3).has(c)} for n in (1, 2, 3)]
    assert set.union(*shares) == set(numbers.values())
    assert sum(map(len, shares)) == len(numbers)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/3"])
def test_impossible_shards_are_refused(text):
    with pytest.raises(InvalidSetting, match="such as 3/16"):
        SuiteShard.parse(text)


def test_a_second_run_in_the_same_folder_is_kept_out(tmp_path):
    with lock(tmp_path / "work"), pytest.raises(InvalidStore, match="another run"):
        run_suite(small_suite(), tmp_path)


def test_damaged_results_are_named(tmp_path):
    suite = small_suite("zero-shot")
    run_suite(suite, tmp_path)
    path = next((tmp_path / "runs").glob("*.json"))
    good = path.read_text()
    for bad, words in [
        (good[:200], "Expected JSON"), ("{}", "fields of a run"),
        (good.replace('"correct":[', '"correct":[1,'), "different lengths"),
        (good.replace('"seed":5', '"seed":6'), "found another"),
    ]:  # fmt: skip
        path.write_text(bad)
        with pytest.raises(InvalidFile, match=words):
            run_suite(suite, tmp_path)
    path.unlink()
    assert run_suite(suite, tmp_path).computed == 60


def test_parts_of_different_settings_are_never_mixed(tmp_path):
    suite = small_suite("zero-shot")
    run_suite(suite, tmp_path, shard=SuiteShard(1, 2))
    path = next(tmp_path.glob("work-1-of-2/parts/*/*.json"))
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"settings": {"penalty": 3.0}}))
    with pytest.raises(InvalidFile, match="same settings"):
        run_suite(suite, tmp_path)


def test_missing_data_is_a_reason_and_the_rest_goes_on(tmp_path):
    def some(dataset, encoder, splits):
        if dataset == "lost":
            raise MissingData("Expected lost, found nothing.")
        return load(dataset, encoder, splits)

    suite = small_suite("zero-shot", datasets=("small", "lost"))
    outcome = run_suite(suite, tmp_path, load_features=some)
    assert len(outcome.results) == 2
    assert set(outcome.reasons.values()) == {"Expected lost, found nothing."}


def test_too_few_images_are_a_reason_with_the_numbers(tmp_path):
    def few(dataset, encoder, splits):
        return small_features(images=3)

    outcome = run_suite(small_suite("zero-shot"), tmp_path, load_features=few)
    assert any("found fewer of 6, such as 3" in reason for reason in outcome.reasons.values())


def test_only_the_splits_that_are_needed_are_asked_for(tmp_path):
    asked = []

    def note(dataset, encoder, splits):
        asked.append(splits)
        return load(dataset, encoder, splits)

    suite = small_suite("zero-shot", "paddle")
    run_suite(replace(suite, tables=suite.tables[:1]), tmp_path, load_features=note)
    run_suite(replace(suite, tables=suite.tables[1:]), tmp_path, load_features=note)
    assert asked == [{"test"}, {"test", "train", "val"}]


def test_every_run_of_a_column_is_loaded_once():
    groups = plan_suite(small_suite(datasets=("b", "a"))).groups
    assert [(group.dataset, group.encoder) for group in groups] == [("a", "tiny"), ("b", "tiny")]


def tuned(run, features):
    seen = []

    def evaluate(chunks):
        seen.extend(chunks)
        return [evaluate_chunk(features, chunk) for chunk in chunks]

    from transduce.benchmark.evaluation import evaluate_chunk

    return tuning.tune(run, features, evaluate), seen


PADDLE = small_run(method="paddle", protocol=small_suite().tables[1].protocol, tuned=True)


def test_tuning_never_sees_a_test_image():
    found, chunks = tuned(PADDLE, small_features())
    assert {(c.run.query_split, c.run.support_split) for c in chunks} == {("val", "val")}
    assert {c.stop for c in chunks} == {5}
    assert len(chunks) == len(found.candidates) == 9
    best = max(found.candidates, key=lambda candidate: candidate.accuracy)
    assert found.chosen == best.settings


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
    assert found.chosen == {"penalty": 5 / 75}
    assert "not tuned" in found.reason


def test_settings_of_the_run_are_not_tuned():
    run = replace(PADDLE, settings=(("penalty", 0.3),))
    assert tuning.candidates(run) == [{}]


def test_the_tuned_choice_is_kept_for_other_numbers_of_tasks(tmp_path):
    folder = ResultFolder(tmp_path)
    run_suite(small_suite("paddle"), tmp_path)
    key = tuning.tuning_key(small_run(method="paddle", protocol=PADDLE.protocol, tuned=True))
    assert folder.read_tuning(key) is not None
    assert tuning.tuning_key(replace(PADDLE, tasks=1000)) == key
