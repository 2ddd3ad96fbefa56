"""A run to be killed: embeds a folder with the tiny encoder, slowed down a little."""

import sys

from tests.features.tiny_encoder import TinyEncoder
from transduce.features.extraction import Resources, extract, settings_for

if __name__ == "__main__":
    source, out, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
    extract(
        source,
        out,
        TinyEncoder(delay=delay),
        settings=settings_for(batch_size=4),
        resources=Resources(workers=1),
        shard_size=8,
    )
