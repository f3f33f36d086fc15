"""Fits that recover what was drawn."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Saved, drawn, unit, with_fit

from facet_lab import LabError, load
from facet_lab._faces import fit_faces, fit_logistic, fit_quality, specimens
from facet_lab._file import Photos
from facet_lab._fit import ANCHORS, Cosines, Tail, cross_fitted, cross_test, fit_means, fit_scores, folds_of, project


def random_faces(persons: int, each: int, dim: int) -> Photos:
    n = persons * each
    template = unit(np.random.default_rng(4).normal(size=(n, dim)))
    return Photos(np.repeat(np.arange(persons), each), np.ones(n, bool), np.ones(n), template, None)


@pytest.mark.parametrize(("shape", "scale"), [(0.0, 0.033), (-0.2, 0.05), (0.1, 0.02)])
def test_known_tails_are_recovered(shape: float, scale: float) -> None:
    # Above .3, which a share of 1e-2 exceeds, the cosines have a generalised Pareto distribution.
    above = (np.arange(1_000_000) + 0.5) / 1_000_000
    truth = Tail(0.3, shape, scale)
    tail = np.array([truth.cosine_at(a / 10) for a in above[above < 1e-2]])
    c = Cosines()
    c.add(np.concatenate([tail, 0.29 * (1 - above[above >= 1e-2])]), np.ones(len(above)))
    fit = c.fit(1)
    assert fit.tail.shape == pytest.approx(shape, abs=0.03)
    wanted = [truth.cosine_at(fmr / 10) for fmr in (1e-3, 1e-4, 1e-5, 1e-6)]
    assert fit.cosines[1:] == pytest.approx(wanted, abs=0.002)


def test_pairs_of_persons_weigh_the_same() -> None:
    p = photos_at([0.1, 0.1, 0.1, 0.2, 0.2, 0.7], [0, 0, 0, 1, 1, 2])
    c = Cosines()
    weight = 1 / np.array([3, 3, 3, 2, 2, 1])
    for i in range(6):
        other = p.person > p.person[i]
        c.add(np.full(6, (p.person[i] + p.person) / 10, np.float32), np.where(other, weight * weight[i], 0))
    assert c.pairs == 11 and c.weight.sum() == pytest.approx(3)
    assert [c.upper(s) for s in (1 / 6, 1 / 2, 5 / 6)] == pytest.approx([0.3, 0.2, 0.1], abs=2 / 2**14)


def photos_at(_: list[float], person: list[int]) -> Photos:
    n = len(person)
    return Photos(np.array(person), np.ones(n, bool), np.ones(n), np.zeros((n, 2), np.float32), None)


def test_calibration_holds_for_other_persons() -> None:
    p = random_faces(700, 2, 24)
    held, _ = cross_test(p)
    for h in held:
        for a, fmr in zip(h.at, ANCHORS.values(), strict=True):
            assert fmr < 1e-5 or a["fmr"].low * 0.8 <= fmr <= a["fmr"].high * 1.25
    # The square of a cosine of random directions in 24 dimensions is Beta(1/2, 23/2).
    assert fit_scores(p).cosines[:4] == pytest.approx([0.4622, 0.5879, 0.6773, 0.7442], abs=0.015)


def test_mean_adds_one_comparison() -> None:
    p = random_faces(200, 5, 24)
    _, rule = cross_test(p)
    for n in range(1, 5):
        alone, both = rule.fmr(n, 6000, 1), rule.fmr(n, 6000)
        assert n * 0.5e-4 < alone < n * 2.2e-4 and alone <= both < alone + 1.7e-4
    one = fit_scores(p)
    assert all(f.cosines[i] >= one.cosines[i] for f in fit_means(p, one).values() for i in range(5))


def test_projection_keeps_the_longest_axes() -> None:
    both = random_faces(300, 2, 40).template * np.repeat([1, 0.01], [24, 16]).astype(np.float32)
    both = unit(both)
    rows, kept = project(both, 24)
    assert kept > 0.999 and np.abs(rows[:, 24:]).max() < 0.02
    assert rows @ rows.T == pytest.approx(np.eye(24), abs=1e-5)
    assert (rows[np.arange(24), np.abs(rows).argmax(axis=1)] > 0).all()
    with pytest.raises(LabError, match="20 independent directions, 24 are needed"):
        project(both[:20], 24)


def test_cross_fit_sees_neither_person() -> None:
    p = random_faces(140, 3, 24)
    fold, at = folds_of(p), np.arange(len(p.person))
    scores = cross_fitted(p, None)(at, at)
    other = Photos(p.person, p.acquired, p.quality, p.template.copy(), None)
    first = np.flatnonzero(fold == 0)
    other.template[first[::2]] = unit(p.template[first[::2]] + 0.5 * p.template[1])  # in one part many are alike
    changed = cross_fitted(other, None)(at, at)
    assert np.abs(scores - scores.T).max() <= 1  # products round differently
    # Comparisons with the part come from fits that did not see it, and those of other parts from fits that did.
    assert (changed[np.ix_(first[1::2], fold > 0)] == scores[np.ix_(first[1::2], fold > 0)]).all()
    assert not (changed[np.ix_(fold == 1, fold == 2)] == scores[np.ix_(fold == 1, fold == 2)]).all()


def test_logistic_finds_known_weights() -> None:
    r = np.random.default_rng(5)
    x = np.column_stack([r.uniform(0, 200, 40_000), r.uniform(0, 0.1, 40_000), r.normal(size=40_000)])
    share = (r.random(40_000) < 1 / (1 + np.exp(7.2 - 0.07 * x[:, 0] - 60 * x[:, 1]))).astype(float)
    found = fit_logistic(x, share, np.ones(len(x)))
    assert found.weights[:2] == pytest.approx([0.07, 60], rel=0.06) and abs(found.weights[2]) < 0.08
    assert found.bias == pytest.approx(-7.2, abs=0.4)


def test_separated_cases_give_finite_weights() -> None:
    x = np.column_stack([np.arange(100.0), np.full(100, 5.0)])
    share = (x[:, 0] >= 50).astype(float)
    found = fit_logistic(x, share, np.ones(100))
    assert 0 < found.weights[0] < 10 and abs(found.weights[1]) < 1e-9 and found.auc(x, share) == 1


def test_evidence_tells_faces_from_the_rest(saved: Saved) -> None:
    lab = load(saved(with_fit(drawn())))
    assert lab.fit is not None
    s = specimens(lab, lab.fit, None)
    assert s.pairs == 400
    f = fit_faces(s, 0.8)
    # Of drawn faces one in fifty of norm 7 − ln 49/1.2 = 3.76 reaches the cosine.
    assert 2.5 < f.min_norm < 5 and f.norm_auc > 0.8 and f.upright > 0.95 and f.by_shape > 0.8
    is_face, _ = f.judge(s)
    assert is_face[s.photographs].all() and is_face[s.shuffled].mean() < 0.1
    q = fit_quality(s, 0.8, f)
    assert q.auc > 0.8 and q.photographs == 100 and q.logistic.weights[0] > 0.5


def test_norm_that_tells_nothing_is_not_asked(saved: Saved) -> None:
    arrays = with_fit(drawn())
    arrays["seen_feature"][:, 0] = np.random.default_rng(1).normal(10, 1, 400)
    lab = load(saved(arrays))
    assert lab.fit is not None
    f = fit_faces(specimens(lab, lab.fit, None), 0.8)
    assert f.min_norm == 0 and f.evidence["face"]["norm"] == 0
