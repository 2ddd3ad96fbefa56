"""Benchmarks: suites of runs on labeled features, fair, resumable, on one machine or many."""
