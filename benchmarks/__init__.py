"""Benchmarks of speed and memory, outside the package: `python -m benchmarks` runs all."""
