"""Correcting the labels of a run in the browser, on this machine alone."""
