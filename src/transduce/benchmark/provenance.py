"""What results say about how they were computed: settings, versions, machine."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from transduce.benchmark.run import Setting
from transduce.simplex.threads import available_cores

LIBRARIES = ("transduce", "numpy", "scipy", "numba")


@dataclass(frozen=True)
class Provenance:
    """All settings of the method (its defaults too), library versions, and the machine."""

    settings: Mapping[str, Setting]
    versions: Mapping[str, str]
    machine: Mapping[str, Setting]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide the numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


@cache
def machine() -> dict[str, Setting]:
    """Return the processor's name, the cores this process may use, and the operating system."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return {"processor": processor, "cores": available_cores(), "system": platform.system()}
