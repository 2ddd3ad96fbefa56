"""Episodes: tasks drawn from a labeled dataset by a protocol, each with its truth beside it."""

from transduce.benchmark.episodes.episode_protocol import EpisodeProtocol
from transduce.benchmark.episodes.protocol import (
    PROTOCOLS,
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    FewShotProtocol,
    ZeroShotProtocol,
    protocol_from_json,
    protocol_to_json,
)
from transduce.benchmark.episodes.sampler import Draw, Episode, draw_rows, sample

__all__ = [
    "PROTOCOLS",
    "AllClassesProtocol",
    "BalancedProtocol",
    "DirichletProtocol",
    "Draw",
    "Episode",
    "EpisodeProtocol",
    "FewShotProtocol",
    "ZeroShotProtocol",
    "draw_rows",
    "protocol_from_json",
    "protocol_to_json",
    "sample",
]
