"""Nothing that was acknowledged is lost, whatever happens to the process or the disk."""

import json
import multiprocessing
import resource

import pytest

from transduce.errors import InvalidFile, NotSaved
from transduce.labeling.files import read_labeled
from transduce.labeling.journal import ANSWERS, REVIEWED, Journal, line_of


@pytest.fixture
def journal(tmp_path):
    return Journal.open(tmp_path)


def test_answers_draws_and_undos_are_read_back(journal):
    journal.append("review", "ü.png", "cat")
    journal.append("draw", facts={"seed": 3, "files": ["a.png"]})
    journal.append("audit", "a.png", "dog", {"size": 60})
    journal.append("review", "ü.png", "dog")
    journal.append("undo", "ü.png", "cat", {"of": "review"})
    again = Journal.open(journal.folder)
    for found in (journal, again):
        assert found.review == {"ü.png": "cat"}
        assert found.audit == {"a.png": "dog"}
        assert [draw["files"] for draw in found.draws] == [["a.png"]]
        assert [line["kind"] for line in found.lines] == [
            "review", "draw", "audit", "review", "undo",
        ]  # fmt: skip
        assert all(line["time"].endswith("+00:00") for line in found.lines)
    journal.append("undo", "a.png", None, {"of": "audit"})
    assert Journal.open(journal.folder).audit == {}


def test_names_that_are_no_text_in_utf_8_are_kept(journal):
    journal.append("review", "\udcff.png", "cat")
    assert Journal.open(journal.folder).review == {"\udcff.png": "cat"}


@pytest.mark.parametrize("length", range(1, 100, 7))
def test_a_torn_line_is_ignored_and_written_over(journal, length):
    journal.append("review", "a.png", "cat")
    whole = journal.path.read_bytes()
    journal.append("review", "b.png", "dog")
    torn = journal.path.read_bytes()[: len(whole) + length]
    journal.path.write_bytes(torn[: torn.rfind(b"}") + 1] if torn.endswith(b"\n") else torn)
    again = Journal.open(journal.folder)
    assert again.review == {"a.png": "cat"}
    again.append("review", "c.png", "fox")
    assert Journal.open(journal.folder).review == {"a.png": "cat", "c.png": "fox"}
    assert len(journal.path.read_bytes().splitlines()) == 2


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"kind": "review"}', '{"kind": "import"}',
                                  '{"kind": "audit", "file_name": 3, "label": "cat"}'])  # fmt: skip
def test_a_broken_line_in_the_middle_is_named(journal, line):
    journal.append("review", "a.png", "cat")
    text = f"{line}\n".encode() + journal.path.read_bytes()
    journal.path.write_bytes(text)
    with pytest.raises(InvalidFile, match=f"line 1 of .*{ANSWERS}"):
        Journal.open(journal.folder)
    assert journal.path.read_bytes() == text


def test_kinds_of_later_versions_are_passed_over(journal):
    journal.path.write_text('{"kind": "note", "text": "hello"}\n')
    journal.append("review", "a.png", "cat")
    assert Journal.open(journal.folder).review == {"a.png": "cat"}


def test_a_run_with_reviewed_csv_alone_is_read_and_taken_over(tmp_path):
    (tmp_path / REVIEWED).write_text("file_name,label\na.png,cat\nb.png,dog\n")
    journal = Journal.open(tmp_path)
    assert journal.review == {"a.png": "cat", "b.png": "dog"}
    journal.append("review", "b.png", "fox")
    journal.write_reviewed()
    again = Journal.open(tmp_path)
    assert again.review == {"a.png": "cat", "b.png": "fox"} == read_labeled(tmp_path / REVIEWED)
    (tmp_path / REVIEWED).unlink()  # the journal stands alone
    assert Journal.open(tmp_path).review == again.review
    journal.path.write_bytes(journal.path.read_bytes()[:30])  # killed while taking it over
    again.write_reviewed()
    assert Journal.open(tmp_path).review == again.review


def test_two_writers_lose_nothing(tmp_path):
    first, second = Journal.open(tmp_path), Journal.open(tmp_path)
    first.append("review", "a.png", "cat")
    second.append("review", "b.png", "dog")
    first.append("review", "c.png", "fox")
    assert first.review == {"a.png": "cat", "b.png": "dog", "c.png": "fox"}
    second.refresh()
    assert second.review == first.review


def _append(folder, number):
    journal = Journal.open(folder)
    for step in range(20):
        journal.append("review", f"{number}-{step}.png", "cat")


def test_processes_at_once_lose_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append, args=(tmp_path, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert len(Journal.open(tmp_path).review) == 60


@pytest.fixture
def room():
    """Let files grow to a size and no further: the system then takes a part and refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("more", [0, 40])
def test_a_disk_that_takes_no_more_changes_nothing_and_is_said(journal, room, more):
    journal.append("review", "a.png", "cat")
    before = journal.path.read_bytes()
    room(len(before) + more)
    with pytest.raises(NotSaved, match="File too large; nothing"):
        journal.append_lines([line_of("review", "b.png", "dog"), line_of("review", "c.png", "fox")])
    assert journal.path.read_bytes() == before
    assert journal.review == {"a.png": "cat"}
    room(10_000)
    journal.append("review", "b.png", "dog")
    assert Journal.open(journal.folder).review == {"a.png": "cat", "b.png": "dog"}


def test_a_run_that_is_gone_is_said_and_forgotten(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    journal = Journal.open(folder)
    journal.append("review", "a.png", "cat")
    journal.path.unlink()
    folder.rmdir()
    with pytest.raises(NotSaved, match="No such file"):
        journal.append("review", "b.png", "dog")
    journal.refresh()
    assert journal.review == {}


def test_every_line_is_json(journal):
    journal.append("review", 'a\n"\u2028.png', "cat")
    lines = journal.path.read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["file_name"] for line in lines[:-1]] == ['a\n"\u2028.png']
