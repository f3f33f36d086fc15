"""Lists of pairs in the format of the data set LFW, and its protocol (view 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._file import Flags, Ints, Lab, LabError, Photos
from ._score import MAX, THRESHOLDS, Compare
from ._verify import Evidence

_PAIRS_MAX = 1_000_000
_BYTES_MAX = 64 << 20
_NUMBER = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class Pairs:
    """Pairs of photographs, by their indices, with the fold of each."""

    first: Ints
    second: Ints
    fold: Ints


def read_pairs(file: Path, lab: Lab) -> Pairs:
    """Reads a list.

    Its first line has the number of folds and of pairs of each kind in a fold, or only the latter for one fold. A line
    is "name number number" for a pair of one person, or "name number name number"; name and number 1 are the
    photograph name/name_0001.
    """
    if file.stat().st_size > _BYTES_MAX:
        raise LabError(f"{file.name} has more than {_BYTES_MAX >> 20} MB")
    try:
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        head = [int(field) for field in lines[0]]
    except (ValueError, IndexError) as e:
        raise LabError(f"{file.name}: the first line is not the number of folds and of pairs") from e
    folds, each = [1, *head] if len(head) == 1 else head if len(head) == 2 else [0, 0]
    if not (folds >= 1 and each >= 1 and 2 * folds * each <= _PAIRS_MAX):
        raise LabError(f"{file.name}: the first line is not the number of folds and of pairs, at most {_PAIRS_MAX}")
    names = [Path(f).stem for f in lab.file]
    places = {(lab.persons[p], name): i for i, (p, name) in enumerate(zip(lab.photos.person, names, strict=True))}
    found: list[tuple[int, int]] = []
    for number, fields in enumerate(lines[1:], 2):
        if fields:
            try:
                found.append(_pair(fields, places))
            except LabError as e:
                raise LabError(f"{file.name}: line {number}: {e}") from e
    if len(found) != 2 * folds * each:
        raise LabError(f"{file.name} has {len(found)} pairs; its first line says {folds} folds of {each} and {each}")
    first, second = np.array(found).T
    pairs = Pairs(first, second, np.arange(len(found)) // (2 * each))
    mated = lab.photos.person[first] == lab.photos.person[second]
    if (np.bincount(pairs.fold, mated) != each).any():
        raise LabError(f"{file.name} has a fold without {each} pairs of each kind")
    return pairs


def _pair(fields: list[str], places: dict[tuple[str, str], int]) -> tuple[int, int]:
    if len(fields) == 3:
        fields = [fields[0], fields[1], fields[0], fields[2]]
    if len(fields) != 4 or not (_NUMBER.fullmatch(fields[1]) and _NUMBER.fullmatch(fields[3])):
        raise LabError("it is not two numbers of photographs with one name or two")
    at = []
    for name, number in (fields[:2], fields[2:]):
        place = places.get((name, f"{name}_{int(number):04}"))
        if place is None:
            raise LabError(f"there is no photograph {number} of {name!r}")
        at.append(place)
    if at[0] == at[1]:
        raise LabError("it is a photograph with itself")
    return at[0], at[1]


def compare_pairs(photos: Photos, pairs: Pairs, compare: Compare) -> tuple[Evidence, dict[str, Any] | None]:
    """Compares the pairs; returns also the result of the protocol, or None for fewer than two folds."""
    a, b = photos.person[pairs.first], photos.person[pairs.second]
    acquired = photos.acquired[pairs.first] & photos.acquired[pairs.second]
    score = np.full(len(a), -1)  # matches at no threshold
    score[acquired] = [int(compare(pairs.first[i : i + 1], pairs.second[i : i + 1])[0, 0])
                       for i in np.flatnonzero(acquired)]  # fmt: skip
    mated, others = acquired & (a == b), acquired & (a != b)
    quality = (np.clip(photos.quality, 0, 1) * 65535).astype(np.int64)
    worse = np.minimum(quality[pairs.first], quality[pairs.second])
    evidence = Evidence(
        np.bincount(score[mated], minlength=MAX + 1), np.bincount(score[others], minlength=MAX + 1),
        int((~acquired & (a == b)).sum()), int((~acquired & (a != b)).sum()),
        np.zeros(int(photos.person.max()) + 1, np.int64), a[mated], score[mated], worse[mated],
        a[others], b[others], score[others], 0, every=False,
    )  # fmt: skip
    return evidence, _cross_validate(pairs.fold, a == b, score) if pairs.fold[-1] > 0 else None


def _cross_validate(fold: Ints, mated: Flags, score: Ints) -> dict[str, Any]:
    """Decides each fold at the threshold that is best on the others: the middle of the lowest run of best ones."""
    thresholds, shares = [], []
    for n in range(fold[-1] + 1):
        here = fold == n
        right = _right(mated[~here], score[~here])
        best = np.flatnonzero(right == right.max())
        run = best[: np.argmax(np.diff(best, append=best[-1] + 2) > 1) + 1]
        thresholds.append(int(run[0] + run[-1]) // 2)
        shares.append(float(((score[here] >= thresholds[-1]) == mated[here]).mean()))
    return {
        "folds": len(shares),
        "meanShareRight": float(np.mean(shares)),
        "standardError": float(np.std(shares, ddof=1) / np.sqrt(len(shares))),
        "thresholdMin": min(thresholds),
        "thresholdMax": max(thresholds),
    }


def _right(mated: Flags, score: Ints) -> Ints:
    """Returns how many pairs each threshold decides rightly."""
    below = np.cumsum(np.bincount(score + 1, np.where(mated, -1, 1), THRESHOLDS))
    return np.asarray(int(mated.sum()) + below, np.int64)
