"""Fits of scores: which cosine has which false match rate.

Down to a false match rate of TAIL_SHARE the cosine is read off the data. Below, where a few pairs would decide, it
comes from a generalised Pareto distribution, fitted to the most alike comparisons by probability-weighted moments
(Hosking and Wallis, Technometrics 29, 1987). Each pair of persons has a total weight of 1, however many photographs
they have, because otherwise people with many press photographs would decide the tail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._file import Floats, Ints, LabError, Photos, Singles
from ._score import MAX, PHOTOS_MAX, PHOTOS_MIN, SAME_IMAGE, STATED, Compare, Scores, Table, blocks, means, table
from ._verify import compare_all, verify

ANCHORS = {4000: 1e-2, 5000: 1e-3, 6000: 1e-4, 7000: 1e-5, 8000: 1e-6}
STATED_FMR = 1e-5
TAIL_SHARE = 1e-3
FOLDS = 5
PERSONS_MIN = 100
SPLIT_SEED = 2382
SUBJECT_DRAWS = 3
HELD_PHOTOS = PHOTOS_MAX + 1  # photographs of the persons whose FNMR is measured
_BINS = 1 << 14  # of cosines from -1 to 1
_TAIL_BINS_MIN = 20


class TailError(LabError):
    """There are too few non-mated comparisons for a fit."""


class Cosines:
    """A weighted histogram of non-mated cosines."""

    def __init__(self) -> None:
        self.weight = np.zeros(_BINS)
        self.pairs = 0

    def add(self, cosines: Singles, weights: Floats) -> None:
        """Counts comparisons; one of weight 0 is none."""
        at = np.clip((np.asarray(cosines, np.float64) + 1) / 2 * _BINS, 0, _BINS - 1).astype(np.int64)
        self.weight += np.bincount(at.ravel(), weights.ravel(), _BINS)
        self.pairs += int(np.count_nonzero(weights))

    def upper(self, share: float) -> float:
        """Returns the cosine above which the share of the weight lies, interpolated within a bin."""
        left = share * self.weight.sum()
        above = np.cumsum(self.weight[::-1])
        k = int(np.argmax(above > left))
        bin_ = _BINS - 1 - k
        w = self.weight[bin_]
        return float(_edge(bin_ + 1 - (left - (above[k] - w)) / w)) if w > 0 else -1.0

    def tail(self) -> Tail:
        u = self.upper(TAIL_SHARE)
        first = int((u + 1) / 2 * _BINS)
        bins = np.arange(_BINS - 1, first - 1, -1)
        w = self.weight[bins].copy()
        w[-1] *= (_edge(first + 1) - u) / (_edge(1) - _edge(0))  # its part above u
        bins, w = bins[w > 0], w[w > 0]
        if len(bins) < _TAIL_BINS_MIN:
            text = f"{len(bins)} different cosines, and it needs {_TAIL_BINS_MIN}"
            raise TailError(f"too few non-mated comparisons: the tail has {text}")
        y = (np.maximum(_edge(bins), u) + _edge(bins + 1)) / 2 - u
        b0 = (w * y).sum() / w.sum()
        b1 = (w * y * (np.cumsum(w) - w / 2)).sum() / w.sum() ** 2
        if not b0 > 2 * b1:
            raise TailError("too few non-mated comparisons: the tail is too heavy to be fitted")
        return Tail(u, float(2 - b0 / (b0 - 2 * b1)), float(2 * b0 * b1 / (b0 - 2 * b1)))

    def fit(self, persons: int) -> Fit:
        tail = self.tail()
        cosines = [self.upper(r) if r >= TAIL_SHARE else tail.cosine_at(r) for r in ANCHORS.values()]
        return Fit(cosines, tail, self.pairs, persons)


def _edge(bin_: Any) -> Any:
    return 2 * bin_ / _BINS - 1


@dataclass(frozen=True)
class Tail:
    """The fitted tail: from cosine on, a generalised Pareto distribution."""

    cosine: float
    shape: float
    scale: float

    def cosine_at(self, fmr: float) -> float:
        times = TAIL_SHARE / fmr
        if abs(self.shape) < 1e-9:  # the limit is the exponential distribution
            return self.cosine + self.scale * math.log(times)
        return self.cosine + float(self.scale / self.shape * (times**self.shape - 1))


@dataclass(frozen=True)
class Fit:
    """The cosines of the anchors."""

    cosines: list[float]
    tail: Tail
    pairs: int
    persons: int

    def points(self) -> list[dict[str, Any]]:
        """Returns the points for a manifest: the anchors between no likeness and identity."""
        inner = [(min(0.0, self.cosines[0] - 0.1), 0), *zip(self.cosines, ANCHORS, strict=True)]
        rounded = [{"cosine": round(c, 4) + 0.0, "score": s} for c, s in inner]
        ends: list[dict[str, Any]] = [{"cosine": SAME_IMAGE, "score": MAX}, {"cosine": 1, "score": MAX}]
        return [{"cosine": -1, "score": 0}, *rounded, *ends]

    def table(self) -> Table:
        return table(self.points())


def fit_scores(photos: Photos) -> Fit:
    """Fits the anchors to photographs."""
    p = photos.part(photos.acquired)
    if len(p.person) == 0 or p.person[0] == p.person[-1]:
        raise TailError("there are faces of fewer than two persons")
    cosines, share = Cosines(), _shares(p)
    for rows in blocks(len(p.person), len(p.person)):
        weight = share[rows][:, None] * share[None, : rows.stop]
        weight[p.person[rows][:, None] <= p.person[None, : rows.stop]] = 0  # in order of persons
        cosines.add(p.template[rows] @ p.template[: rows.stop].T, weight)
    fit = cosines.fit(len(np.unique(p.person)))
    fit.table()
    return fit


def _shares(p: Photos) -> Floats:
    """Returns 1 over the number of acquired photographs of each photograph's person."""
    counts = np.bincount(p.person[p.acquired], minlength=int(p.person.max()) + 1)
    return 1 / np.maximum(counts[p.person], 1)


def _draws(photos: Photos, least: int) -> Iterator[Ints]:
    """Yields, SUBJECT_DRAWS times, the photographs of each person with at least so many, in a random order."""
    random = np.random.default_rng([SPLIT_SEED, least])
    at = np.flatnonzero(photos.acquired)
    if not len(at):
        return
    groups = [g for g in np.split(at, np.flatnonzero(np.diff(photos.person[at])) + 1) if len(g) >= least]
    for _ in range(SUBJECT_DRAWS):
        yield from (random.permutation(g) for g in groups)


def fit_means(photos: Photos, one: Fit) -> dict[int, Fit]:
    """Fits the means of several photographs.

    The points of more photographs are nowhere laxer than those of fewer, because few persons have many photographs,
    and a tail of few persons may seem to end early. A number of photographs that too few persons have is left out.
    """
    out: dict[int, Fit] = {}
    share = _shares(photos)
    for n in range(PHOTOS_MIN, PHOTOS_MAX + 1):
        groups = [g[:n] for g in _draws(photos, n)]
        if not groups:
            continue
        mean, person = means(photos, groups), photos.person[[g[0] for g in groups]]
        cosines = Cosines()
        for rows in blocks(len(groups), len(share)):
            other = photos.acquired & (person[rows][:, None] != photos.person)
            cosines.add(mean[rows] @ photos.template.T, np.where(other, share, 0))
        try:
            fit = cosines.fit(len(np.unique(person)))
            fit = replace(fit, cosines=[max(a, b) for a, b in zip(fit.cosines, one.cosines, strict=True)])
        except TailError:
            continue
        fit.table()
        out[n] = one = fit
    return out


class RuleTest:
    """Rates of the rule of searches, the larger of the best photograph's and the mean's score, and of the best alone.

    They are histograms of scores by number of photographs, on persons that were not fitted.
    """

    def __init__(self) -> None:
        self.non_mated = np.zeros((PHOTOS_MAX + 1, 2, MAX + 1))  # rule, best
        self.mated = np.zeros((PHOTOS_MAX + 1, 2, MAX + 1))
        self.pairs = np.zeros(PHOTOS_MAX + 1, np.int64)
        self.mated_pairs = 0

    def test(self, one: Table, of_mean: dict[int, Table], photos: Photos) -> None:
        share = _shares(photos)
        for n in range(1, PHOTOS_MAX + 1):
            groups = [g[:n] for g in _draws(photos, n)]
            for rows in blocks(len(groups), len(share) * n):
                part = groups[rows]
                rule, best = _rule(one, of_mean, photos, part, n)
                person = photos.person[[g[0] for g in part]]
                other = photos.acquired & (person[:, None] != photos.person)
                self._add(self.non_mated[n], rule, best, np.where(other, share, 0))
                self.pairs[n] += int(other.sum())
        for g in _draws(photos, HELD_PHOTOS):
            probes = photos.part(g[PHOTOS_MAX:])
            self.mated_pairs += len(probes.person)
            for n in range(1, PHOTOS_MAX + 1):
                rule, best = _rule(one, of_mean, photos, [g[:n]], n, probes)
                self._add(self.mated[n], rule, best, np.full(rule.shape, 1 / len(probes.person)))

    @staticmethod
    def _add(to: Floats, rule: Scores, best: Scores, weights: Floats) -> None:
        to[0] += np.bincount(rule.ravel(), weights.ravel(), MAX + 1)
        to[1] += np.bincount(best.ravel(), weights.ravel(), MAX + 1)

    def fmr(self, n: int, threshold: int, which: int = 0) -> float:
        h = self.non_mated[n, which]
        return float(h[threshold:].sum() / h.sum()) if h.sum() > 0 else 0.0

    def fnmr_at(self, n: int, rate: float, which: int) -> tuple[float, int]:
        """Returns the FNMR at the lowest threshold whose FMR is at most rate, and the threshold."""
        h, m = self.non_mated[n, which], self.mated[n, which]
        above = np.append(np.cumsum(h[::-1])[::-1], 0)
        t = int(np.argmax(above <= rate * h.sum()))
        return float(m[:t].sum() / m.sum()) if m.sum() > 0 else 0.0, t


def _rule(
    one: Table, of_mean: dict[int, Table], photos: Photos, groups: list[Ints], n: int, probes: Photos | None = None
) -> tuple[Scores, Scores]:
    """Compares groups of n enrolled photographs each; returns the scores by the rule and of the best alone."""
    templates = (probes or photos).template
    best = np.max([one.score(photos.template[[g[k] for g in groups]] @ templates.T) for k in range(n)], axis=0)
    if n < PHOTOS_MIN:
        return best, best
    rule = np.maximum(best, of_mean.get(n, one).score(means(photos, groups) @ templates.T))
    return rule, best


@dataclass(frozen=True)
class Held:
    """A fit on one half of the persons, with its rates on the other half."""

    fit: Fit
    at: list[dict[str, Any]]


def cross_test(photos: Photos) -> tuple[list[Held], RuleTest]:
    """Fits on either half of the persons and tests on the other."""
    persons = int(photos.person.max()) + 1
    side = np.random.default_rng([SPLIT_SEED, 0]).permutation(persons) % 2
    halves = [photos.part(side[photos.person] == s) for s in (0, 1)]
    held, rule = [], RuleTest()
    for i in (0, 1):
        fit, on = fit_scores(halves[i]), halves[1 - i]
        of_one = fit.table()
        rule.test(of_one, {n: f.table() for n, f in fit_means(halves[i], fit).items()}, on)
        at = verify(compare_all(on, of_one.compare(on.template)), tuple(ANCHORS), ())["atThresholds"]
        held.append(Held(fit, at))
    return held, rule


def project(both: Singles, rows: int) -> tuple[Singles, float]:
    """Fits a projection: the principal axes about zero, and the share of the squared norm that they keep."""
    moments = both.astype(np.float64).T @ both
    lengths, axes = np.linalg.eigh(moments)
    lengths, axes = lengths[::-1], axes[:, ::-1].T
    if len(lengths) < rows or not lengths[rows - 1] > 2**-50 * np.linalg.norm(lengths):
        text = f"{int((lengths > 2**-50 * np.linalg.norm(lengths)).sum())} independent directions, {rows} are needed"
        raise LabError(f"fit a projection to {len(both)} photographs: they have {text}")
    axes = axes[:rows]
    largest = axes[np.arange(rows), np.abs(axes).argmax(axis=1)]
    return (axes * np.sign(largest)[:, None]).astype(np.float32), float(lengths[:rows].sum() / len(both))


def folds_of(photos: Photos) -> Ints:
    """Returns the part of each photograph's person."""
    persons = int(photos.person.max()) + 1
    if persons < PERSONS_MIN:
        raise LabError(f"{persons} persons are too few to fit scores on parts of them: it needs {PERSONS_MIN}")
    return np.random.default_rng([SPLIT_SEED, FOLDS]).permutation(persons)[photos.person] % FOLDS


def cross_fitted(photos: Photos, rows: int | None) -> Compare:
    """Returns scores that were fitted on other persons than the compared ones.

    The persons are divided into FOLDS parts, and the score of two photographs comes from a fit to the parts in which
    neither person is. With rows, a projection of both embedders' values is fitted in the same way.
    """
    fold = folds_of(photos)
    fits: dict[tuple[int, int], tuple[Table, Singles]] = {}
    for a in range(FOLDS):
        for b in range(a + 1):
            inner, p = (fold != a) & (fold != b), photos
            if rows is not None and photos.both is not None:
                p = photos.projected(project(photos.both[inner & photos.acquired], rows)[0])
            fits[a, b] = fits[b, a] = fit_scores(p.part(inner)).table(), p.template

    def compare(i: Ints, j: Ints) -> Scores:
        out = np.zeros((len(i), len(j)), np.int64)
        for (a, b), (scores, templates) in fits.items():
            left, right = np.flatnonzero(fold[i] == a), np.flatnonzero(fold[j] == b)
            out[np.ix_(left, right)] = scores.score(templates[i[left]] @ templates[j[right]].T)
        return out

    return compare


def spectrum(photos: Photos) -> list[float]:
    """Returns each value's share of the squared norm."""
    t = photos.template[photos.acquired].astype(np.float64)
    return [round(float(v), 5) for v in (t**2).mean(axis=0)]


def stated_cosine(fit: Fit) -> float:
    """Returns the cosine of score 7000 as the manifest has it."""
    return round(fit.cosines[list(ANCHORS).index(STATED)], 4)
