"""The command line with an encoder that takes its time, and small shards: for Ctrl-C."""

import time

from transduce.cli.main import run_command_line
from transduce.encoders.onnx import OnnxEncoder
from transduce.features import planning

planning.FEWEST_ROWS = 4
embed_images = OnnxEncoder.embed_images


def slowly(self, pixels):
    time.sleep(0.2)
    return embed_images(self, pixels)


if __name__ == "__main__":
    OnnxEncoder.embed_images = slowly
    run_command_line()
