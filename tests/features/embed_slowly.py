"""A run to be killed: embeds a folder with the tiny encoder, slowed down a little."""

import sys

from tests.features.tiny_encoder import TinyEncoder
from transduce.features.embedding import Resources, embed

if __name__ == "__main__":
    source, out, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
    embed(
        source,
        TinyEncoder(delay=delay),
        out=out,
        batch_size=4,
        resources=Resources(workers=1),
        shard_size=8,
    )
