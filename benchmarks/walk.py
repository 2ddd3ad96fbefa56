"""The files that one `transduce label` passes through: those of which some function is called.

`python -m benchmarks.walk` draws 60 images, labels them with the encoder `shapes`, and prints the
files by room. Functions of worker processes are not seen; imports, and what modules call while they
are imported, do not count.
"""

import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType

import transduce

PACKAGE = Path(transduce.__file__).parent
FUNCTION = 0x01  # the flag of code objects that are functions, not modules or class bodies


def files_called(words: list[str]) -> set[str]:
    """Return the files of the package, relative to it, that a command calls a function of."""
    files = set[str]()

    def look(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        is_new = event == "call" and name not in files and frame.f_code.co_flags & FUNCTION
        if is_new and not _at_import(frame):
            files.add(name)

    from transduce.cli.main import app

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        app(words, standalone_mode=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = [Path(name) for name in files if name.startswith(f"{PACKAGE}/")]
    return {path.relative_to(PACKAGE).as_posix() for path in inside if path.suffix == ".py"}


def _at_import(frame: FrameType | None) -> bool:
    """Whether a module of the package calls the function while it is imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Print the files by room, and their number."""
    from transduce.cli.demo import draw_folder

    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images"
        draw_folder(images, images=60, classes=8, seed=0)
        words = ["label", str(images), "--classes", "red circle,blue square,green star"]
        files = files_called([*words, "--encoder", "shapes", "--out", folder, "--quiet"])
    rooms = defaultdict[str, list[str]](list)
    for name in sorted(files):
        room, _, file = name.rpartition("/")
        rooms[room or "."].append(file.removesuffix(".py"))
    for room, names in rooms.items():
        print(f"{room:20} {len(names):3}  {' '.join(names)}")
    print(f"{'together':20} {len(files):3}")


if __name__ == "__main__":
    main()
