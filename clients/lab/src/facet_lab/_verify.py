"""Verification 1:1: the rates of ISO/IEC 19795-1 over all pairs of photographs.

Comparisons of one person are not independent, so intervals come from resampling persons: a person that is drawn w
times counts its mated comparisons w times, and a pair of persons its non-mated comparisons w·v times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._file import Floats, Ints, LabError, Photos
from ._rate import EVENTS_MIN, Rate, draws, share
from ._score import MAX, STATED, THRESHOLDS, Compare, blocks

THRESHOLD_LIST = (4000, 5000, 6000, 7000, 8000)
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MATED_MAX = 1 << 23
TAIL_MAX = 1 << 21  # non-mated comparisons that are kept, those with the highest scores
_POINT_STEP = 50
_DISCARD_STEPS = 20


@dataclass(frozen=True)
class Curve:
    """FMR and FNMR at each threshold: FMR never rises, FNMR never falls."""

    fmr: Floats
    fnmr: Floats

    def eer(self) -> tuple[float, int]:
        """Returns the equal error rate, and the lowest threshold at which FNMR is not below FMR."""
        t = int(np.argmax(self.fnmr >= self.fmr))
        if t == 0:
            return float(self.fmr[0]), 0
        before, after = self.fnmr[t - 1 : t + 1] - self.fmr[t - 1 : t + 1]
        part = -before / (after - before) if after > before else 1
        return float(self.fmr[t - 1] + part * (self.fmr[t] - self.fmr[t - 1])), t

    def threshold_for(self, rate: float) -> int:
        """Returns the lowest threshold whose FMR is at most rate."""
        return int(np.argmax(self.fmr <= rate))


def curve_of(mated: Floats | Ints, non_mated: Floats | Ints) -> Curve:
    """Returns the curve of histograms of scores."""
    m, n = max(mated.sum(), 1), max(non_mated.sum(), 1)
    above = np.append(np.cumsum(non_mated[::-1])[::-1], 0)
    return Curve(above / n, np.insert(np.cumsum(mated), 0, 0) / m)


def pair_counts(photos: Ints) -> tuple[int, int]:
    """Returns the pairs of photographs of one person, and of two. photos has the number of each person's."""
    return int((photos * (photos - 1) // 2).sum()), pairs_of_two(photos)


def pairs_of_two(photos: Ints) -> int:
    return int((photos.sum() ** 2 - (photos**2).sum()) // 2)


@dataclass
class Evidence:
    """Comparisons: each mated one, and the non-mated ones with a score of floor or more."""

    mated: Ints  # histograms
    non_mated: Ints
    mated_failed: int
    non_mated_failed: int
    photos: Ints  # acquired photographs of each person
    mated_person: Ints
    mated_score: Ints
    mated_quality: Ints  # of the worse photograph, in 1/65535
    first: Ints  # persons of the non-mated comparisons
    second: Ints
    score: Ints
    floor: int
    every: bool = True  # whether every pair was compared; else photos is not known


def compare_all(photos: Photos, compare: Compare) -> Evidence:
    """Compares every photograph with every other one. Its memory is bounded."""
    persons = int(photos.person.max()) + 1
    every = np.bincount(photos.person, minlength=persons)
    own = np.bincount(photos.person[photos.acquired], minlength=persons)
    (mated, others), (mated_all, others_all) = pair_counts(own), pair_counts(every)
    if mated > MATED_MAX:
        raise LabError(f"there are {mated} mated pairs, more than {MATED_MAX}")
    at = np.flatnonzero(photos.acquired)
    person, quality = photos.person[at], (np.clip(photos.quality[at], 0, 1) * 65535).astype(np.int64)
    counts = np.zeros(MAX + 1, np.int64)
    floor = 0
    if others > TAIL_MAX:
        for rows in blocks(len(at), len(at)):
            scores, _, later = _block(at, person, rows, compare)
            counts += np.bincount(scores[later], minlength=MAX + 1)
        above = np.append(np.cumsum(counts[::-1])[::-1], 0)
        floor = int(np.argmax(above <= TAIL_MAX // 2))
        counts[:] = 0
    found: list[tuple[Ints, Ints, Ints]] = []
    kept: list[tuple[Ints, Ints, Ints]] = []
    for rows in blocks(len(at), len(at)):
        scores, same, later = _block(at, person, rows, compare)
        counts += np.bincount(scores[later], minlength=MAX + 1)
        i, j = np.nonzero(same)
        found.append((person[rows][i], scores[i, j], np.minimum(quality[rows][i], quality[j])))
        i, j = np.nonzero(later & (scores >= floor))
        kept.append((person[rows][i], person[j], scores[i, j]))
    empty = np.zeros(0, np.int64)
    mated_person, mated_score, mated_quality = (np.concatenate(c) for c in zip(*found or [(empty,) * 3], strict=True))
    first, second, score = (np.concatenate(c) for c in zip(*kept or [(empty,) * 3], strict=True))
    return Evidence(
        np.bincount(mated_score, minlength=MAX + 1), counts, mated_all - mated, others_all - others, own,
        mated_person, mated_score, mated_quality, first, second, score, floor,
    )  # fmt: skip


def _block(at: Ints, person: Ints, rows: slice, compare: Compare) -> tuple[Any, Any, Any]:
    """Compares some photographs with all before them; returns the scores and where pairs are mated and not."""
    columns = slice(0, rows.stop)
    scores = compare(at[rows], at[columns])
    before = np.arange(rows.stop)[None, :] < np.arange(rows.start, rows.stop)[:, None]
    same = person[rows][:, None] == person[columns][None, :]
    return scores, before & same, before & ~same


class _Resample:
    """The curves of one resample of the persons. Rates below the floor are not known."""

    def __init__(self, e: Evidence, w: Ints, weight: Floats) -> None:
        both = w[e.first] * w[e.second]
        mated = np.bincount(e.mated_score, w[e.mated_person], MAX + 1)
        others = np.bincount(e.score, both, MAX + 1)
        curve = curve_of(mated, others)
        total = pairs_of_two(w * e.photos) if e.every else others.sum()  # also those below the floor
        self.curve = Curve(curve.fmr * (others.sum() / max(total, 1)), curve.fnmr)
        self.floor = e.floor
        runs = np.bincount(e.mated_person, minlength=len(w))
        each = w[e.mated_person] / runs[e.mated_person]
        below = np.cumsum(np.bincount(e.mated_score, each, MAX + 1)) / max(w[runs > 0].sum(), 1)
        self.person_fnmr = np.insert(below, 0, 0)
        pairs = pairs_of_two(w * (e.photos > 0))
        above = np.cumsum(np.bincount(e.score, both * weight, MAX + 1)[::-1])[::-1] / max(pairs, 1)
        self.person_fmr = np.append(above, 0)

    def fmr(self, t: int) -> float:
        return float(self.curve.fmr[t]) if t >= self.floor else np.nan

    def eer(self) -> float:
        rate, t = self.curve.eer()
        return rate if t > self.floor or self.floor == 0 else np.nan

    def fnmr_at(self, rate: float) -> float:
        t = self.curve.threshold_for(rate)
        return float(self.curve.fnmr[t]) if t > self.floor or self.floor == 0 else np.nan


def verify(e: Evidence, thresholds: tuple[int, ...] = THRESHOLD_LIST, targets: tuple[float, ...] | None = None) -> Any:
    """Returns the rates at thresholds and at false match rates, with intervals, in the form of the JSON file."""
    curve = curve_of(e.mated, e.non_mated)
    others, mated = int(e.non_mated.sum()), int(e.mated.sum())
    if targets is None:  # those for which there are enough pairs
        targets = tuple(t for t in TARGETS if t * others >= EVENTS_MIN)
    there = int((e.photos > 0).sum())
    pairs = there * (there - 1) // 2
    weight = 1 / np.maximum(e.photos[e.first] * e.photos[e.second], 1)
    runs = np.bincount(e.mated_person, minlength=len(e.photos))
    resamples = [_Resample(e, w, weight) for w in draws(len(e.photos))]

    def spread(rate: Rate, trials: int, of: Any) -> Rate:
        return rate.widen(np.array([of(r) for r in resamples], float), trials)

    at = []
    for t in thresholds:
        matched, rejected = int(e.non_mated[t:].sum()), int(e.mated[:t].sum())
        high, low = e.score >= t, e.mated_score < t
        kept = t >= e.floor
        persons = np.minimum(e.first, e.second) * len(e.photos) + np.maximum(e.first, e.second)
        mean = float((low / runs[e.mated_person]).sum() / max((runs > 0).sum(), 1))
        row: dict[str, Any] = {
            "threshold": t,
            "fmr": spread(share(matched, others), others, lambda r, t=t: r.fmr(t)),
            "falseMatchPersonPairs": len(np.unique(persons[high])) if kept else 0,
            "fnmr": spread(share(rejected, mated), mated, lambda r, t=t: r.curve.fnmr[t]),
            "fnmrMeanOverPersons": spread(Rate(mean), int((runs > 0).sum()), lambda r, t=t: r.person_fnmr[t]),
            "gfar": share(matched, others + e.non_mated_failed),
            "gfrr": share(rejected + e.mated_failed, mated + e.mated_failed),
        }
        if kept and e.every:
            rate = Rate(float(weight[high].sum() / max(pairs, 1)))
            row["fmrMeanOverPersons"] = spread(rate, pairs, lambda r, t=t: r.person_fmr[t])
        at.append(row)
    of_target = []
    for target in targets:
        t = curve.threshold_for(target)
        fmr, fnmr = share(int(e.non_mated[t:].sum()), others), share(int(e.mated[:t].sum()), mated)
        of_target.append(
            {
                "fmrMax": target,
                "threshold": t,
                "fmr": spread(fmr, others, lambda r, t=t: r.fmr(t)),
                "fnmr": spread(fnmr, mated, lambda r, target=target: r.fnmr_at(target)),
            }
        )
    eer, eer_at = curve.eer()
    return {
        "matedPairs": mated,
        "matedPairsFailed": e.mated_failed,
        "nonMatedPairs": others,
        "nonMatedPairsFailed": e.non_mated_failed,
        "eer": spread(Rate(eer), min(mated, others), lambda r: r.eer()),
        "eerThreshold": eer_at,
        "atThresholds": at,
        "atFMR": of_target,
        "det": [{"threshold": t, "fmr": float(curve.fmr[t]), "fnmr": float(curve.fnmr[t])}
                for t in range(0, THRESHOLDS, _POINT_STEP)],
        "errorVersusDiscard": discard(e, STATED),
    }  # fmt: skip


def discard(e: Evidence, threshold: int) -> list[dict[str, Any]]:
    """Returns the FNMR that remains when the mated pairs of the lowest quality are not compared (ISO/IEC 29794-1)."""
    order = np.argsort(e.mated_quality, kind="stable")
    quality, rejected = e.mated_quality[order], e.mated_score[order] < threshold
    curve: dict[int, dict[str, Any]] = {}
    for step in range(_DISCARD_STEPS if len(order) else 0):
        start = int(np.searchsorted(quality, quality[len(order) * step // _DISCARD_STEPS]))
        curve[start] = {
            "discarded": start / len(order),
            "qualityMin": quality[start] / 65535,
            "fnmr": share(int(rejected[start:].sum()), len(order) - start),
        }
    return list(curve.values())
