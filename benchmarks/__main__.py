"""`make bench`: every benchmark, one after the other; what is recorded already is not repeated."""

import sys

from benchmarks import (
    embedding,
    growth,
    labeling,
    method_speed,
    method_times,
    prepared_profile,
    speed,
    throughput,
)

for benchmark in (
    speed,
    prepared_profile,
    growth,
    method_times,
    method_speed,
    throughput,
    embedding,
    labeling,
):
    print(f"\n== {benchmark.__name__}\n", flush=True)
    benchmark.main(sys.argv[1:])
