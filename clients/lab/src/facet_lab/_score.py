"""Scores of cosines, 0 to 9999: straight lines between the points of a manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._file import Ints, LabError, Photos, Singles

MAX = 9999
THRESHOLDS = MAX + 2  # from 0, at which everything matches, to MAX + 1, at which nothing does
SAME_IMAGE = 0.999
PHOTOS_MIN, PHOTOS_MAX = 2, 4  # of the means with points of their own
STATED = 7000  # the score whose false match rate a manifest states

Scores = NDArray[np.int64]
# Compare returns the scores of photographs, given by their indices: rows × columns.
Compare = Callable[[Ints, Ints], Scores]


@dataclass(frozen=True)
class Table:
    """The smallest cosine of each score from 1 on, rising."""

    least: Singles

    def score(self, cosines: Singles) -> Scores:
        return np.searchsorted(self.least, np.asarray(cosines, np.float32), side="right")

    def compare(self, templates: Singles) -> Compare:
        return lambda rows, columns: self.score(templates[rows] @ templates[columns].T)


def table(points: Sequence[dict[str, Any]]) -> Table:
    """Returns the table of points, each with a cosine and a score."""
    cosines = np.array([p["cosine"] for p in points], float)
    scores = np.array([p.get("score", 0) for p in points], float)
    if len(points) < 2 or not (np.diff(cosines) > 0).all() or (np.diff(scores) < 0).any() or scores[-1] != MAX:
        raise LabError("the points make no usable scores: cosines must rise, and scores go from 0 to 9999")
    at = np.arange(1, MAX + 1)
    right = np.searchsorted(scores, at, side="left")
    step = scores[right] - scores[right - 1]
    rise = (at - scores[right - 1]) / step * (cosines[right] - cosines[right - 1])
    least = (cosines[right - 1] + rise).astype(np.float32)
    if not (np.diff(least) > 0).all() or least[-1] > np.float32(SAME_IMAGE):
        raise LabError("the points make no usable scores: two scores have the same cosine")
    return Table(least)


def of_manifest(manifest: dict[str, Any]) -> tuple[Table, dict[int, Table]]:
    """Returns the manifest's table, and that of the means of each number of photographs."""
    try:
        calibration = manifest["calibration"]
        plain = table(calibration["points"])
        means = {int(s["photos"]): table(s["points"]) for s in calibration.get("subjects") or []}
    except (KeyError, TypeError, ValueError) as e:
        raise LabError(f"the manifest's calibration can't be used: {e}") from e
    return plain, {n: means.get(n, plain) for n in range(PHOTOS_MIN, PHOTOS_MAX + 1)}


def means(photos: Photos, groups: Sequence[Ints]) -> Singles:
    """Returns the mean template of each group of photographs, of unit length."""
    sums = np.array([photos.template[g].sum(axis=0, dtype=np.float64) for g in groups])
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums / np.where(length > 0, length, 1), np.float32)


def blocks(n: int, columns: int, most: int = 1 << 24) -> list[slice]:
    """Divides n rows so that a block of rows × columns has at most about most numbers."""
    step = max(1, most // max(1, columns))
    return [slice(i, min(n, i + step)) for i in range(0, n, step)]
