"""`transduce` and `python -m transduce`: Ctrl-C is answered before the slow imports begin."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line."""
    before = signal.signal(signal.SIGINT, _stop_at_once)
    from transduce.cli.main import run_command_line

    signal.signal(signal.SIGINT, before)
    run_command_line()


def _stop_at_once(number: int, frame: FrameType | None) -> None:
    """End without a traceback: nothing was begun, so that there is nothing to clean up."""
    os.write(2, b"Stopped.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
