"""Refusals of settings: a method with a value it cannot work with is never built."""

import math

from transduce.errors import InvalidSetting


def positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InvalidSetting(f"Expected a positive {name}, found {value!r}.")


def at_least_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidSetting(f"Expected {name} of at least 0, found {value!r}.")


def whole_from_one(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidSetting(f"Expected {name} to be a whole number from 1, found {value!r}.")
