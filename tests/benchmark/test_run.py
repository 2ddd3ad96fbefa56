import json

import pytest

from tests.benchmark.small_features import FOUR_SHOT, ZERO_SHOT, small_run
from transduce.benchmark.run import Run, build_method, settings_of
from transduce.errors import InvalidFile, InvalidSetting, UnknownName


def test_survives_json_and_hashing():
    run = small_run(settings=(("penalty", 0.5), ("max_iter", 3)), protocol=FOUR_SHOT)
    again = Run.from_json(json.loads(json.dumps(run.to_json())))
    assert again == run
    assert hash(again) == hash(run)
    assert again.id == run.id


def test_order_of_settings_does_not_matter():
    settings = (("penalty", 0.5), ("max_iter", 3))
    assert small_run(settings=settings) == small_run(settings=settings[::-1])


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "other"}, {"encoder": "other"}, {"method": "zero-shot"}, {"tasks": 61},
        {"seed": 6}, {"space": "embedding"}, {"protocol": FOUR_SHOT}, {"temperature": 20.0},
        {"settings": (("penalty", 0.5),)}, {"tuned": True}, {"query_split": "all"},
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_is_another_run(change):
    assert small_run(**change).id != small_run().id


def test_id_is_a_readable_file_name():
    run = small_run(dataset="folder:/a b/../c", encoder="open_clip:RN50/openai")
    assert run.id.startswith(
        "folder-a-b-c--open-clip-RN50-openai--0-shot--probability--em-dirichlet-"
    )
    assert "/" not in run.id


def test_id_never_changes_between_versions():
    """Results on disk are found by it: a change makes every one of them be computed again."""
    assert small_run(protocol=ZERO_SHOT).id.endswith("7aa896a194")


def test_refuses_what_cannot_be_run():
    with pytest.raises(InvalidSetting, match="at least 2 tasks"):
        small_run(tasks=1)
    with pytest.raises(InvalidSetting, match="space"):
        small_run(space="probabilty")
    with pytest.raises(UnknownName, match="did you mean 'penalty'"):
        build_method("em-dirichlet", {"penalti": 1.0})
    with pytest.raises(InvalidFile, match="fields of a run"):
        Run.from_json({"dataset": "x"})


def test_builds_the_method_with_tuned_settings_on_top():
    method = small_run(settings=(("max_iter", 3),)).build(penalty=2.0)
    assert (method.max_iter, method.penalty) == (3, 2.0)
    assert settings_of(method)["penalty"] == 2.0
