"""Searches 1:N in galleries of several sizes, and advice on thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._file import Flags, Ints, Photos
from ._rate import EVENTS_MIN, SEED, Rate, draws, share
from ._score import PHOTOS_MAX, PHOTOS_MIN, STATED, THRESHOLDS, Compare, Scores, Table, blocks, means
from ._verify import THRESHOLD_LIST, Curve

LIST_LENGTH = 10
GALLERY_DRAWS = 10
SIZES = (10, 100, 1000, 10_000, 0)  # 0: all persons
_SUPPORTED_MAX = 8000  # the highest score for which the calibration states a meaning

# ScoreOf returns the scores of probes with every enrolled person: probes × persons.
ScoreOf = Callable[[Ints], Scores]


def enrol(photos: Photos, most: int) -> list[Ints]:
    """Returns the photographs with which each person is enrolled: the first acquired ones, at most so many.

    It leaves one to search with. A person with one acquired photograph is enrolled with it, and one with none has
    no group.
    """
    at = np.flatnonzero(photos.acquired)
    groups = np.split(at, np.flatnonzero(np.diff(photos.person[at])) + 1) if len(at) else []
    return [g[: max(1, min(most, len(g) - 1))] for g in groups]


def best(compare: Compare, enrolled: list[Ints]) -> ScoreOf:
    """Returns the score with the best of a person's enrolled photographs."""
    columns, starts = np.concatenate(enrolled), np.cumsum([0, *(len(g) for g in enrolled[:-1])])
    return lambda probes: np.maximum.reduceat(compare(probes, columns), starts, axis=1)


def with_means(photos: Photos, enrolled: list[Ints], of_one: ScoreOf, tables: dict[int, Table]) -> ScoreOf:
    """Returns the larger of the best photograph's score and that of the mean, as galleries with subjectTemplates."""
    mean = means(photos, enrolled)
    many = np.array([min(len(g), PHOTOS_MAX) for g in enrolled])

    def score(probes: Ints) -> Scores:
        points, cosines = of_one(probes).copy(), photos.template[probes] @ mean.T
        for n in range(PHOTOS_MIN, PHOTOS_MAX + 1):
            of = many == n
            points[:, of] = np.maximum(points[:, of], tables[n].score(cosines[:, of]))
        return points

    return score


class _Tally:
    """Events and searches of each person, for one size of galleries."""

    def __init__(self, persons: int, thresholds: int) -> None:
        self.events = np.zeros((persons, 2 + 2 * thresholds), np.int64)  # rank 1, rank 10, FPIR and FNIR in turn
        self.mated = np.zeros(persons, np.int64)
        self.searches = np.zeros(persons, np.int64)
        self.found = 0  # probes with the mate in one of the galleries

    def rates(self, events: Ints, mated: Flags, photos: int) -> list[Rate]:
        """Returns rates whose intervals resample the probes' persons; the galleries' draws are averaged."""
        trials = np.where(mated, self.mated[:, None], self.searches[:, None])
        sums, counts = self.events[:, events].sum(axis=0), trials.sum(axis=0)
        values = np.array([
            (w @ self.events[:, events]) / np.maximum(w @ trials, 1) for w in draws(len(self.mated))
        ])  # fmt: skip
        out = []
        for i, (event, count) in enumerate(zip(sums, counts, strict=True)):
            rate = share(int(event), int(count))
            out.append(rate.widen(values[:, i], self.found if mated[i] else photos) if count else rate)
        return out


def identify(
    photos: Photos, enrolled: list[Ints], score: ScoreOf, sizes: tuple[int, ...] = SIZES,
    thresholds: tuple[int, ...] = THRESHOLD_LIST,
) -> dict[str, Any]:  # fmt: skip
    """Searches galleries of each of the sizes with every acquired photograph."""
    persons = int(photos.person.max()) + 1
    out: dict[str, Any] = {
        "persons": persons,
        "photographsEnrolled": sum(len(g) for g in enrolled),
        "fte": share(persons - len(enrolled), persons),
        "galleries": [],
    }
    if not enrolled:
        return out
    n = len(enrolled)
    place = np.full(persons, -1)
    place[photos.person[[g[0] for g in enrolled]]] = np.arange(n)
    is_enrolled = np.zeros(len(photos.person), bool)
    is_enrolled[np.concatenate(enrolled)] = True
    kept = sorted({s if 0 < s <= n else n for s in sizes})
    tallies = {s: _Tally(persons, len(thresholds)) for s in kept}
    random = np.random.default_rng(SEED)
    galleries = [random.permutation(n) for _ in range(GALLERY_DRAWS)]
    probes = np.flatnonzero(photos.acquired)
    for rows in blocks(len(probes), n):
        _search(probes[rows], photos.person, place, is_enrolled, score, galleries, tallies, np.array(thresholds))
    for size, tally in tallies.items():
        events = np.arange(2 + 2 * len(thresholds))
        rates = tally.rates(events, (events < 2) | (events % 2 == 1), len(probes))
        at = [{"threshold": t, "fpir": rates[2 + 2 * i], "fnir": rates[3 + 2 * i]} for i, t in enumerate(thresholds)]
        drawn = 1 if size == n else GALLERY_DRAWS
        out["galleries"].append({"n": size, "draws": drawn, "rank1": rates[0], "rank10": rates[1], "atThresholds": at})
    return out


def _search(
    probes: Ints, person: Ints, place: Ints, is_enrolled: Flags, score: ScoreOf, galleries: list[Ints],
    tallies: dict[int, _Tally], thresholds: Ints,
) -> None:  # fmt: skip
    """Searches with some probes in all galleries. Equal scores count against the mate."""
    own, scores = place[person[probes]], score(probes)
    lines = np.arange(len(probes))
    mate = np.where((own >= 0) & ~is_enrolled[probes], scores[lines, own], -1)
    others = scores.copy()
    others[lines[own >= 0], own[own >= 0]] = -2
    for size, tally in tallies.items():
        ever = np.zeros(len(probes), bool)
        for gallery in galleries[: 1 if size == len(place[place >= 0]) else None]:
            members = gallery[:size]
            there = others[:, members]
            top, better = there.max(axis=1), (there >= mate[:, None]).sum(axis=1)
            mated = (mate >= 0) & np.isin(own, members)
            missed = (mate[:, None] < thresholds) | (better >= LIST_LENGTH)[:, None]
            happened = np.zeros((len(probes), tally.events.shape[1]), np.int64)
            happened[:, 0], happened[:, 1] = mated & (better == 0), mated & (better < LIST_LENGTH)
            happened[:, 2::2], happened[:, 3::2] = top[:, None] >= thresholds, mated[:, None] & missed
            np.add.at(tally.events, person[probes], happened)
            np.add.at(tally.mated, person[probes], mated)
            np.add.at(tally.searches, person[probes], 1)
            ever |= mated
        tally.found += int(ever.sum())


def end_to_end(photos: Photos, compare: Compare) -> dict[str, Rate]:
    """Returns the rates of persons who enrol their first photograph and search with all others.

    A photograph that was not acquired counts against them.
    """
    first = np.diff(photos.person, prepend=-1) > 0
    references = np.flatnonzero(first & photos.acquired)
    probes = np.flatnonzero(~first & photos.acquired & np.isin(photos.person, photos.person[references]))
    found = 0
    for rows in blocks(len(probes), len(references)):
        scores = compare(probes[rows], references)
        own = photos.person[probes[rows]][:, None] == photos.person[references]
        found += int((scores[own] > np.where(own, -1, scores).max(axis=1, initial=-1)).sum())
    return {
        "failureToEnrol": share(int((first & ~photos.acquired).sum()), int(first.sum())),
        "rank1": share(found, int((~first).sum())),
    }


def false_positive(fmr: float, n: int) -> float:
    """Returns FPIR in a gallery of n by the formula."""
    return -math.expm1(n * math.log1p(-fmr)) if fmr < 1 else 1


def least_threshold(fmr: float, non_mated: int, curve: Curve, stated: float) -> tuple[int, bool]:
    """Returns the least threshold, rounded up, with at most that FMR, and whether it rests on what the pack states.

    The threshold is 0 if the pack states none that low.
    """
    step = 50
    if fmr * non_mated >= EVENTS_MIN:
        return min(-(-curve.threshold_for(fmr) // step) * step, THRESHOLDS - 1), False
    at = STATED + math.ceil(1000 * math.log10(stated / fmr) / step - 1e-9) * step
    return (at if at <= _SUPPORTED_MAX else 0), True


def advise(
    photos: Photos, enrolled: list[Ints], score: ScoreOf, found: dict[str, Any], wanted: dict[str, float],
    non_mated: int, curve: Curve, stated: float,
) -> dict[str, Any]:  # fmt: skip
    """Returns the least thresholds that give at most the wanted number of false alarms a day."""
    fpir = min(1, wanted["alarmsPerDay"] / wanted["searchesPerDay"])
    many = found["photographsEnrolled"] / max(1, len(enrolled))
    sizes = [g["n"] for g in found["galleries"]]
    rows: list[dict[str, Any]] = []
    for n in [*sizes, *([int(wanted["gallery"])] if wanted.get("gallery") else [])]:
        threshold, by_pack = least_threshold(-math.expm1(math.log1p(-fpir) / (n * many)), non_mated, curve, stated)
        row: dict[str, Any] = {"n": n, "threshold": threshold, "stated": by_pack}
        if threshold and n in sizes and len(rows) < len(sizes):
            at = identify(photos, enrolled, score, (n,), (threshold,))["galleries"][0]["atThresholds"][0]
            row |= {"fpir": at["fpir"], "fnir": at["fnir"]}
        rows.append(row)
    return {**wanted, "fpirMax": fpir, "galleries": rows}
