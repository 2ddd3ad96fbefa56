"""What can go wrong, each as its own type: catch one, or catch `TransduceError` for all."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

MOST_NAMES_SHOWN = 30


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return "1 image", "2 images" or "1,000 images"; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def some_of(names: Sequence[object], most: int) -> str:
    """Return the first `most` names with commas between, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")


class TransduceError(Exception):
    """Any error this library raises on purpose."""


class InvalidTask(TransduceError, ValueError):
    """The arrays of a task contradict each other or the method; nothing was computed."""


class InvalidSetting(TransduceError, ValueError):
    """A method was given a value it cannot work with."""


class ConvergenceWarning(UserWarning):
    """An answer had not settled when the iterations ended; the message says what to do."""


class InvalidClasses(TransduceError, ValueError):
    """A list of class names cannot be used: empty, ambiguous, or in a file that cannot be read."""


class InvalidTemplate(TransduceError, ValueError):
    """A prompt template without `{}` for the class name."""


class InvalidEncoder(TransduceError, ValueError):
    """An encoder's files are missing, broken or of another format, or its input is."""


class UnknownName(TransduceError, KeyError):
    """A catalogue has no such entry; the message names the nearest one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(str(name), names, n=1)
        article = "an" if kind[0] in "aeiou" else "a"
        shown = some_of(names, MOST_NAMES_SHOWN)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        super().__init__(f"Expected {article} {kind}, found {name!r}{hint} Known: {shown}.")

    def __str__(self) -> str:  # KeyError would print the repr, with its quotes
        return str(self.args[0])


class MissingExtra(TransduceError, ImportError):
    """A library is not installed; the message is the command that installs it.

    Without the name of an extra the library is one that comes with transduce.
    """

    def __init__(self, what: str, extra: str = "") -> None:
        command = f'an extra: pip install "transduce[{extra}]"'
        repair = "a library that comes with transduce: pip install --upgrade transduce"
        super().__init__(f"{what} needs {command if extra else repair}")


class NoImages(TransduceError, ValueError):
    """The source holds no image, or is none of the kinds that are read."""


class UnreachableSource(TransduceError, OSError):
    """A URL that cannot be opened or listed."""


class NetworkRefused(TransduceError, OSError):
    """Something asked for the network while nothing may go over it."""


class WorkerFailed(TransduceError, RuntimeError):
    """The decoding processes cannot run at all, whatever the file."""


class InvalidStore(TransduceError, ValueError):
    """A feature store is damaged, incomplete, or not what the caller takes it for."""


class EncoderMismatch(TransduceError, ValueError):
    """Features of different encoders were mixed; they do not compare, whatever their width."""


class MissingWeights(TransduceError, FileNotFoundError):
    """A model's files are not on this machine; the message says how to get them."""


class EncoderUnavailable(TransduceError, RuntimeError):
    """The model is fine, this machine's libraries or devices are not; the message is the fix."""


class OutOfMemory(TransduceError, MemoryError):
    """A batch did not fit; the message names a smaller one."""


class InvalidFile(TransduceError, ValueError):
    """A file is not what it was taken for; nothing of it was used."""


class InvalidRun(TransduceError, ValueError):
    """A run directory, or the run.toml in it, is not what was taken for one."""


class InvalidAnswer(TransduceError, ValueError):
    """The review page asked for something the run does not have; nothing was saved."""


class NotSaved(TransduceError, OSError):
    """The system refused to write an answer; what was saved before is as it was."""


class RunInUse(TransduceError, OSError):
    """Another review of the same run is open; the message names its process."""


class PortTaken(TransduceError, OSError):
    """The review page cannot listen at the port it was given."""


class MissingData(TransduceError, FileNotFoundError):
    """A dataset, or a part of it, is not on this machine; the message says how to get it."""


class InvalidDataset(TransduceError, ValueError):
    """A dataset's card, split file or folders do not say what they must."""


class DownloadFailed(TransduceError, OSError):
    """A file could not be fetched whole and unchanged; nothing was written under its name."""


class InvalidAudit(TransduceError, ValueError):
    """An audit from which nothing may be concluded: not random, not finished, used before."""


@contextlib.contextmanager
def refused_in_words(refuse: Callable[[str], TransduceError]) -> Iterator[None]:
    """Raise `refuse(reason)` for whatever the block raises but our own errors.

    For readers of files of others, which raise nearly anything on damaged ones, also MemoryError.
    """
    try:
        yield
    except TransduceError:
        raise
    except Exception as error:
        raise refuse(" ".join(str(error).split()) or type(error).__name__) from None
