"""Plain help in groups: options under headings, verbs with their whole first line, examples."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from typer.core import TyperCommand, TyperGroup

OTHERS = "Other options"


class GroupedCommand(TyperCommand):
    """A verb whose options stand under headings; what `headings` does not name comes last."""

    headings: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - click's or typer's
        """Write the arguments, then the options heading by heading."""
        heading_of = {name: head for head, names in self.headings.items() for name in names}
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        groups |= {heading: [] for heading in (*self.headings, OTHERS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                name = str(parameter.name)
                heading = "Arguments" if argument else heading_of.get(name, OTHERS)
                groups[heading].append(record)
        for heading, records in groups.items():
            if records:
                _section(formatter, heading, records)


class LabelHelp(GroupedCommand):
    """The options of `transduce label`."""

    headings = MappingProxyType(
        {
            "What to label": (
                "classes", "classes_file", "template", "features", "images", "like",
            ),
            "What is known already": (
                "truth", "support", "support_from", "classes_present",
            ),
            "How": (
                "encoder", "view", "method", "iterations", "allow_unknown", "min_score", "batch",
                "seed",
            ),
            "The run": ("out", "resume", "run", "details", "as_json", "quiet"),
            "The machine": (
                "device", "batch_size", "workers", "offline", "executor", "address",
            ),
        }
    )  # fmt: skip


class GroupedVerbs(TyperGroup):
    """The list of verbs, under the headings of their `rich_help_panel`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - click's or typer's
        """Write each verb with the first sentence of its help, however long."""
        groups = dict[str, list[tuple[str, str]]]()
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            groups.setdefault(heading, []).append((name, _first_sentence(command.help or "")))
        for heading, records in groups.items():
            _section(formatter, heading, records)


def examples(*lines: str) -> str:
    """Return an epilog with commands to copy, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _section(formatter: Any, heading: str, records: Iterable[tuple[str, str]]) -> None:  # noqa: ANN401
    with formatter.section(heading):
        formatter.write_dl(list(records))
