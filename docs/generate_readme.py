"""Write what `transduce demo` prints into README.md, by `python docs/generate_readme.py`."""

import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent.parent / "README.md"
START, END = "```text\n", "```"
ROWS = 2  # of the table of classes; the others are three dots


def block_of(printed: str) -> str:
    """Return the lines to show of all that the demo printed: no progress, few rows."""
    lines = printed[printed.index("$ transduce label") :].rstrip().splitlines()
    progress = ("Embedding ", "Solving   300/300")
    lines = [line for line in lines if not line.startswith(progress)]
    first = next(row for row, line in enumerate(lines) if line.split()[:1] == ["class"]) + 1
    last = next(row for row in range(first, len(lines)) if not lines[row].startswith("  "))
    return "\n".join([*lines[: first + ROWS], "  ...", *lines[last:]]) + "\n"


def with_block(page: str, block: str) -> str:
    """Return the README with this block in place of the one it has."""
    before, _, rest = page.partition(START)
    return f"{before}{START}{block}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "transduce", "demo"]
        done = subprocess.run(
            words,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
    text = with_block(PAGE.read_text(encoding="utf-8"), block_of(done.stdout))
    PAGE.write_text(text, encoding="utf-8")
    print(f"Wrote {PAGE}")
