"""Rates of errors with their 95 % intervals, by resampling of persons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._file import Floats, Ints

RESAMPLES = 500
SEED = 19795
EVENTS_MIN = 30  # errors on which a rate may rest: the rule of 30 (Doddington et al. 2000)
_Z95 = 1.959963984540054


@dataclass(frozen=True)
class Rate:
    """A share of events among trials. Both counts are 0 for a rate that is no plain share."""

    value: float
    events: int = 0
    trials: int = 0
    low: float | None = None
    high: float | None = None

    def widen(self, values: Floats, trials: int) -> Rate:
        """Returns the rate with the wider of two intervals: of the resampled values, and of independent trials."""
        if not len(values) or np.isnan(values).any():
            return self
        low, high = np.percentile(values, [2.5, 97.5])
        least, most = wilson(self.value, trials)
        return replace(self, low=min(float(low), least), high=max(float(high), most))

    def json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"value": self.value}
        if self.trials:
            out |= {"events": self.events, "trials": self.trials}
        if self.low is not None:
            out["interval95"] = {"low": self.low, "high": self.high}
        return out

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return percent(self.value)
        if self.value >= 0.001 or (self.value == 0 and self.high >= 0.001):
            digits = 2 if (self.low < 0.1 and self.high < 1) or self.low > 0.99 else 1
            value, low, high = (f"{100 * v:.{digits}f}" for v in (self.value, self.low, self.high))
            return f"{value} % [{low}–{high}]"
        return f"{_powers(self.value)} [{_powers(self.low)}–{_powers(self.high)}]"


def share(events: int, trials: int) -> Rate:
    return Rate(events / max(trials, 1), int(events), int(trials))


def wilson(p: float, n: float) -> tuple[float, float]:
    """Returns the 95 % score interval (Wilson 1927) of a share p of n independent trials."""
    if n <= 0:
        return 0, 1
    z = _Z95 * _Z95
    middle = (p + z / (2 * n)) / (1 + z / n)
    half = _Z95 / (1 + z / n) * math.sqrt(p * (1 - p) / n + z / (4 * n * n))
    return (max(0, middle - half) if p > 0 else 0), (min(1, middle + half) if p < 1 else 1)


def with_wilson(rate: Rate) -> Rate:
    low, high = wilson(rate.value, rate.trials)
    return replace(rate, low=low, high=high)


def draws(persons: int) -> Iterator[Ints]:
    """Yields how often each resample has each person (the subset bootstrap of Bolle, Ratha and Pankanti 2004)."""
    for n in range(RESAMPLES):
        drawn = np.random.default_rng([SEED, n]).integers(0, persons, persons)
        yield np.bincount(drawn, minlength=persons)


def percent(rate: float) -> str:
    if 0.9995 < rate < 1:
        return "> 99.9 %"
    if 0.1 <= rate <= 0.99:
        return f"{100 * rate:.1f} %"
    if rate >= 0.001:
        return f"{100 * rate:.2f} %"
    return _powers(rate)


def _powers(rate: float) -> str:
    if not rate > 0:
        return "0"
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def power(rate: float) -> str:
    return f"1e{round(math.log10(rate))}"
