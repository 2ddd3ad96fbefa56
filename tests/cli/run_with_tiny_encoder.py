"""The command line with the tiny encoder in place of the real ones, as a process of its own."""

import sys

import transduce.encoders
from tests.features.tiny_encoder import TinyEncoder
from transduce.cli.main import run_command_line


def load_encoder(identifier, *, offline, device, batch_size, bar):
    # Slow enough for a busy machine to be interrupted before the end.
    return TinyEncoder(name=identifier, delay=1.0)


if __name__ == "__main__":
    transduce.encoders.load_encoder = load_encoder
    sys.argv[0] = "transduce"
    run_command_line()
