"""Episodes: tasks drawn from a labeled dataset, by protocol, each with its truth beside it."""

from transduce.benchmark.episodes.episode import Episode
from transduce.benchmark.episodes.protocol import (
    PROTOCOLS,
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    FewShotProtocol,
    Protocol,
    ZeroShotProtocol,
    protocol_from_json,
    protocol_to_json,
)
from transduce.benchmark.episodes.sampler import Draw, draw, sample

__all__ = [
    "PROTOCOLS",
    "AllClassesProtocol",
    "BalancedProtocol",
    "DirichletProtocol",
    "Draw",
    "Episode",
    "FewShotProtocol",
    "Protocol",
    "ZeroShotProtocol",
    "draw",
    "protocol_from_json",
    "protocol_to_json",
    "sample",
]
