"""Benchmarks: suites of runs on labelled features, fair, resumable, on one machine or many."""
