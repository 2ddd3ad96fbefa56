"""Solving a run again with corrections: the corrected images become shots of their classes."""

from collections.abc import Mapping

from transduce.labeling.run_directory import RunDirectory


def solve_again(run: RunDirectory, corrections: Mapping[str, str]) -> RunDirectory:
    """A new run beside `run` (transduce-002 after transduce-001), with the same settings.

    `corrections` maps file names of the run to labels of its classes or `unknown`. Corrected
    images keep their label (`corrected` is true, they need no review) and are support for the
    others, together with the shots that `run` had; `unknown` ones are left out of the batch. The
    features are those of `run`, so that no image is opened. Names that are not in the run, and
    labels that are no class of it, are refused (InvalidFile).
    """
    raise NotImplementedError
