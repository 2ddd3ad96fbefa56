"""Class names: labels for the results, prompts for the encoder, and files of them."""

import csv
import io
import json
import re
import reprlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.errors import InvalidClasses, MissingExtra

# Before a capital that follows a lower-case letter (but not in iPhone), and before the last
# capital of an acronym that a word follows (HTMLPage).
CAMEL_CASE = re.compile(r"(?<=[A-Za-z][a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
LABEL_COLUMNS = ("class", "label", "class_name", "name")
PROMPT_COLUMN = "prompt"
LIST_KEYS = ("classes", "names")  # names: as in YOLO's data.yaml
ALTERNATIVES = " | "  # between the names of one class in its prompt
FILE_KINDS = (".txt", ".csv", ".json", ".yaml", ".yml")
MOST_BYTES = 1 << 26  # of a file of classes


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The classes in order: `labels` go into results, `prompts` into the encoder's sentences.

    A prompt may hold several names of the class with ` | ` between: "dog | puppy | hound".
    """

    labels: tuple[str, ...]
    prompts: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str], prompts: Iterable[str] | None = None) -> "ClassNames":
        """Return checked classes: no empty names, two or more, none that read the same.

        Prompts are the labels made readable, unless they are given: then they are kept.
        """
        kept = tuple(unicodedata.normalize("NFC", label.strip()) for label in labels)
        if prompts is None:
            texts = tuple(readable(label) for label in kept)
        else:
            texts = tuple(" ".join(prompt.split()) for prompt in prompts)
        if len(texts) != len(kept):
            raise InvalidClasses(
                f"Expected a prompt for each of {len(kept)} classes, found {len(texts)}; write "
                "one for each, or none at all."
            )
        empty = [number for number, text in enumerate(texts, start=1) if not text]
        if empty:
            raise InvalidClasses(
                f"Expected a name for each class, found none for number {empty[0]} of {len(texts)} "
                f"({kept[empty[0] - 1]!r}); name it or remove it."
            )
        if len(texts) < 2:
            given = f"only {kept[0]!r}" if kept else "none"
            raise InvalidClasses(
                f"Expected at least 2 classes to choose between, found {given}; add the "
                "alternatives."
            )
        _refuse_duplicates(kept, texts)
        return cls(kept, texts)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """The names of each class, one or more."""
        return tuple(alternatives(prompt) for prompt in self.prompts)


def alternatives(prompt: str) -> tuple[str, ...]:
    """Return the names in a prompt: usually one."""
    names = tuple(name.strip() for name in prompt.split(ALTERNATIVES))
    return tuple(name for name in names if name) or (prompt,)


def readable(label: str) -> str:
    """Return `AnnualCrop` and `annual_crop` as "annual crop": what a caption would say."""
    name = unicodedata.normalize("NFC", label).strip()
    if not re.search(r"[\s_]", name):  # elsewhere a capital inside a word is a name, as in McLaren
        name = CAMEL_CASE.sub(" ", name)
    return " ".join(name.replace("_", " ").lower().split())


def class_names_from(argument: str) -> ClassNames:
    """Return classes from a command line: a file of them, or their names with commas between."""
    path = Path(argument)
    try:
        named = path.suffix.lower() in FILE_KINDS or path.is_file()
    except OSError:  # longer than a path may be, so that it is no path
        named = False
    if named:
        return read_class_names(path)
    return ClassNames.of(part for part in argument.split(",") if part.strip())


def read_class_names(path: Path) -> ClassNames:
    """Return classes from a file.

    txt: one a line, # for comments. csv: a single column without header, or a header with a column
    `class` (or `label`, `class_name`, `name`) and perhaps `prompt`, which is then given to the
    encoder as it stands. json, yaml: a list of names, {label: prompt}, {0: name, 1: name ...}, or
    any of these under `classes` or `names`. A class may have several names: {dog: [dog, puppy]},
    or "dog | puppy" as its prompt; their embeddings are averaged, as those of templates are.
    """
    kind = path.suffix.lower()
    if kind not in FILE_KINDS:
        raise InvalidClasses(
            f"Expected classes in a file of {', '.join(FILE_KINDS)}, found {path}; rename it."
        )
    try:
        if (size := path.stat().st_size) > MOST_BYTES or not path.is_file():
            raise InvalidClasses(
                f"Expected a file of classes of at most {MOST_BYTES:,} bytes, found {path} "
                f"{f'of {size:,}' if path.is_file() else 'which is none'}; write a shorter list."
            )
        text = path.read_text(encoding="utf-8-sig")
    except InvalidClasses:
        raise
    except FileNotFoundError:
        raise InvalidClasses(
            f"Expected a file of classes, found no {path}; check the path, or list the names "
            "with commas between."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidClasses(
            f"Expected a readable UTF-8 file of classes, found {path}: {error}; save it as UTF-8."
        ) from error
    try:
        return _parse(kind, text)
    except InvalidClasses as error:
        raise InvalidClasses(f"In {path}: {error}") from error
    except RecursionError:
        raise InvalidClasses(
            f"In {path}: Expected a list of names, found lists in lists, hundreds deep; flatten it."
        ) from None


def _parse(kind: str, text: str) -> ClassNames:
    if kind == ".txt":
        lines = (line.strip() for line in text.splitlines())
        return ClassNames.of(line for line in lines if line and not line.startswith("#"))
    if kind == ".csv":
        return _from_csv(text)
    return _from_tree(_load_json(text) if kind == ".json" else _load_yaml(text))


def _from_csv(text: str) -> ClassNames:
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidClasses(f"Expected CSV, found: {error}; is a quote missing?") from None
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = next((header.index(name) for name in LABEL_COLUMNS if name in header), None)
    if column is None:
        if any(len(row) != 1 for row in rows):
            raise InvalidClasses(
                f"Expected one column, or a header with a column {' or '.join(LABEL_COLUMNS)}, "
                f"found {', '.join(rows[0])}; name the column of classes."
            )
        return ClassNames.of(row[0] for row in rows)
    short = [number for number, row in enumerate(rows, start=1) if len(row) != len(header)]
    if short:
        raise InvalidClasses(
            f"Expected {len(header)} cells in each row, found {len(rows[short[0] - 1])} in row "
            f"{short[0]}; quote names that have a comma."
        )
    labels = [row[column] for row in rows[1:]]
    if PROMPT_COLUMN not in header:
        return ClassNames.of(labels)
    prompt = header.index(PROMPT_COLUMN)
    return ClassNames.of(labels, [row[prompt].strip() or readable(row[column]) for row in rows[1:]])


def _load_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except InvalidClasses:
        raise
    except ValueError as error:
        raise InvalidClasses(f"Expected JSON, found: {error}; correct it.") from error


def _load_yaml(text: str) -> object:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("A class file in yaml") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401
            if self.check_event(yaml.AliasEvent):  # ten lines of them can mean a billion names
                raise InvalidClasses("Expected names, found a YAML alias (*); write the names.")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ANN401
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise InvalidClasses("Expected names as keys, found a list or mapping as one.")
            _without_repeats([(key.value, None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:  # the second: dates that there are not
        if isinstance(error, InvalidClasses):
            raise
        reason = " ".join(str(error).split())
        raise InvalidClasses(f"Expected YAML, found: {reason}; correct it.") from error


def _without_repeats(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the pairs as a dict; refuse equal keys, of which both readers keep the last."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        repeated = [
            str(key) for key, count in Counter(key for key, _ in pairs).items() if count > 1
        ]
        raise InvalidClasses(
            f"Expected each key once, found more of {', '.join(map(repr, repeated))}; rename them."
        )
    return tree


def _from_tree(tree: object) -> ClassNames:
    if isinstance(tree, dict):
        for key in LIST_KEYS:
            if isinstance(tree.get(key), list | dict):
                return _from_tree(tree[key])
        numbers = [str(number) for number in range(len(tree))]
        if tree and {str(key) for key in tree} == set(numbers):
            by_number = {str(key): value for key, value in tree.items()}
            return ClassNames.of(_name(by_number[number]) for number in numbers)
        return ClassNames.of(
            [_name(key) for key in tree], [_prompt(value) for value in tree.values()]
        )
    if isinstance(tree, list):
        return ClassNames.of(_name(entry) for entry in tree)
    raise InvalidClasses(
        f"Expected a list of names or {{label: prompt}}, found {type(tree).__name__}; "
        'write them as ["cat", "dog"].'
    )


def _prompt(entry: object) -> str:
    """Return the prompt of a class, of a list of its names all of them."""
    if isinstance(entry, list):
        return ALTERNATIVES.join(readable(_name(name)) for name in entry)
    return _name(entry)


def _name(entry: object) -> str:
    # YAML reads no, on and 1.5 as something else than the names that they were meant to be.
    if isinstance(entry, bool) or not isinstance(entry, str | int):
        raise InvalidClasses(
            f"Expected a name as text, found {reprlib.repr(entry)} ({type(entry).__name__}); put "
            "it in quotes."
        )
    return str(entry)


def _refuse_duplicates(labels: tuple[str, ...], prompts: tuple[str, ...]) -> None:
    spellings = defaultdict(list)
    for label, prompt in zip(labels, prompts, strict=True):
        spellings[prompt].append(label)
    same = {prompt: written for prompt, written in spellings.items() if len(written) > 1}
    listed = [
        f"{prompt!r} from {', '.join(map(repr, written))}" for prompt, written in same.items()
    ] or [repr(label) for label, count in Counter(labels).items() if count > 1]
    if listed:
        raise InvalidClasses(
            f"Expected each class once, found {len(listed)} written more than once: "
            f"{'; '.join(listed)}. Remove or rename them."
        )
