"""Rates with numbers by hand or from closed forms."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import POINTS, Saved, drawn

from facet_lab import LabError, load
from facet_lab._file import Ints, Photos
from facet_lab._groups import spread
from facet_lab._identify import advise, best, enrol, identify, least_threshold
from facet_lab._pairs import compare_pairs, read_pairs
from facet_lab._rate import Rate, draws, percent, wilson
from facet_lab._score import table
from facet_lab._verify import Curve, compare_all, curve_of, verify


def photos(person: list[int], acquired: list[bool] | None = None, quality: list[float] | None = None) -> Photos:
    n = len(person)
    return Photos(
        np.array(person),
        np.array(acquired or [True] * n),
        np.array(quality or [1.0] * n),
        np.zeros((n, 1), np.float32),
        None,
    )


def of(matrix: Any) -> Any:
    """Returns the comparison of a matrix of scores."""
    m = np.array(matrix)
    m = np.maximum(m, m.T)
    return lambda i, j: m[np.ix_(i, j)]


def histogram(*scores: int) -> Ints:
    return np.bincount(scores, minlength=10_000)


def test_table_runs_straight_between_points() -> None:
    t = table(POINTS)
    cosines = np.array([-1, -0.5, 0.2, 0.35, 0.4999, 0.5, 0.9989, 0.999, 1], np.float32)
    assert t.score(cosines).tolist() == [0, 1666, 4000, 5500, 6999, 7000, 9998, 9999, 9999]


def test_eer_is_where_curves_cross() -> None:
    assert curve_of(histogram(10, 20, 30, 40), histogram(1, 2, 3, 35)).eer() == (0.25, 11)
    assert curve_of(histogram(5), histogram(5)).eer() == pytest.approx((0.5, 6))
    assert curve_of(histogram(9), histogram(1)).eer() == (0, 2)


def test_lowest_threshold_keeps_the_rate() -> None:
    c = curve_of(histogram(9), histogram(1, 2, 3, 4))
    assert [c.threshold_for(r) for r in (1, 0.75, 0.5, 0.49, 0.25, 0)] == [0, 2, 3, 4, 4, 5]


def test_wilson_is_the_published_interval() -> None:
    assert wilson(0.1, 100) == pytest.approx((0.0552, 0.1744), abs=5e-5)
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=5e-5)
    assert wilson(1, 29)[1] == 1


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(0.0123, 0, 0, 0.01, 0.02), "1.23 % [1.00–2.00]"),
        (Rate(0.25, 0, 0, 0.2, 0.3), "25.0 % [20.0–30.0]"),
        (Rate(2e-5, 0, 0, 0, 4e-5), "2.0e-5 [0–4.0e-5]"),
        (Rate(0, 0, 0, 0, 0.01), "0.00 % [0.00–1.00]"),
    ],
)
def test_rates_are_shown_in_one_unit(rate: Rate, text: str) -> None:
    assert str(rate) == text


def test_rates_without_interval_have_few_digits() -> None:
    assert [percent(r) for r in (0, 9.96e-5, 0.00123, 0.5, 0.9999)] == ["0", "1.0e-4", "0.12 %", "50.0 %", "> 99.9 %"]


def test_pairs_are_counted_by_hand() -> None:
    p = photos([0, 0, 0, 1, 1, 2, 2], [True, True, True, True, True, True, False], [0.9, 0.5, 0.9, 0.9, 0.2, 1, 1])
    scores = np.zeros((7, 7), int)
    scores[0, 1], scores[0, 2], scores[1, 2], scores[3, 4] = 7500, 6000, 7000, 100
    scores[0, 3], scores[1, 3], scores[2, 5] = 7000, 7200, 8000
    e = compare_all(p, of(scores))
    v = verify(e, (7000,), (0.2,))
    assert (v["matedPairs"], v["matedPairsFailed"], v["nonMatedPairs"], v["nonMatedPairsFailed"]) == (4, 1, 11, 5)
    a = v["atThresholds"][0]
    assert (a["fmr"].events, a["fmr"].trials, a["fnmr"].events, a["fnmr"].trials) == (3, 11, 2, 4)
    assert a["falseMatchPersonPairs"] == 2
    # Pairs of persons: 2 of 6, 1 of 3, 0 of 2 matched. Persons: 1 of 3 and 1 of 1 rejected.
    assert a["fmrMeanOverPersons"].value == pytest.approx((2 / 6 + 1 / 3) / 3)
    assert a["fnmrMeanOverPersons"].value == pytest.approx((1 / 3 + 1) / 2)
    assert (a["gfar"].trials, a["gfrr"].events, a["gfrr"].trials) == (16, 3, 5)
    assert v["atFMR"][0]["threshold"] == 7001
    # The pair of quality .2 is discarded first, then both of .5.
    assert [(d["fnmr"].events, d["fnmr"].trials) for d in v["errorVersusDiscard"]] == [(2, 4), (1, 3), (1, 1)]


def test_kept_tail_gives_the_same_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(3)
    p = photos(sorted(r.integers(0, 40, 200).tolist()))
    scores = of(r.integers(0, 10_000, (200, 200)))
    whole = verify(compare_all(p, scores), (2000, 9000), (0.01,))
    monkeypatch.setattr("facet_lab._verify.TAIL_MAX", 10_000)
    e = compare_all(p, scores)
    cut = verify(e, (2000, 9000), (0.01,))
    assert 2000 < e.floor < 9000 and len(e.score) <= 5000
    for key, value in whole["atThresholds"][1].items():
        assert str(cut["atThresholds"][1][key]) == str(value)
    assert str(cut["atFMR"][0]["fnmr"]) == str(whole["atFMR"][0]["fnmr"])
    assert cut["atThresholds"][0]["fmr"] == Rate(whole["atThresholds"][0]["fmr"].value, *_counts(whole))


def _counts(v: Any) -> tuple[int, int]:
    fmr = v["atThresholds"][0]["fmr"]
    return fmr.events, fmr.trials


def test_one_persons_errors_widen_the_interval() -> None:
    # 50 persons with 5 photographs; all pairs of 5 persons are rejected, or one of each of 50.
    person = np.repeat(np.arange(50), 5)
    scores = np.full((250, 250), 9000)
    for p in range(5):
        scores[np.ix_(person == p, person == p)] = 0
    together = verify(compare_all(photos(person.tolist()), of(np.tril(scores))), (7000,), ())
    scores[:] = 9000
    scores[1::5, 0::5] = scores[0::5, 1::5] = 0
    alone = verify(compare_all(photos(person.tolist()), of(np.tril(scores))), (7000,), ())
    a, b = (v["atThresholds"][0]["fnmr"] for v in (together, alone))
    assert a.value == b.value == 0.1
    assert a.high - a.low > 2 * (b.high - b.low)


def test_draws_are_the_same_every_time() -> None:
    first, again = next(draws(50)), next(draws(50))
    assert first.sum() == 50 and (first == again).all()


def test_searches_are_counted_by_hand() -> None:
    # The case of TestSearchesCountedByHand: photographs 0, 2 and 4 are enrolled, 1 and 3 are probes.
    p = photos([0, 0, 1, 1, 2, 2, 3], [True, True, True, True, True, False, False])
    s = np.zeros((7, 7), int)
    s[0, 2], s[0, 4], s[2, 4] = 10, 20, 7000
    s[0, 1], s[2, 1], s[4, 1] = 8000, 7500, 30
    s[0, 3], s[2, 3], s[4, 3] = 40, 6000, 6000
    enrolled = enrol(p, 1)
    found = identify(p, enrolled, best(of(s), enrolled), (0, 99), (6000, 7000, 8000))
    assert (found["persons"], found["fte"].events, len(found["galleries"])) == (4, 1, 1)
    g = found["galleries"][0]
    assert (g["n"], g["draws"], g["rank1"].events, g["rank1"].trials, g["rank10"].events) == (3, 1, 1, 2, 2)
    counts = [(a["fpir"].events, a["fpir"].trials, a["fnir"].events, a["fnir"].trials) for a in g["atThresholds"]]
    assert counts == [(4, 5, 0, 2), (3, 5, 1, 2), (0, 5, 1, 2)]


def test_enrol_leaves_one_to_search_with() -> None:
    p = photos([0, 0, 0, 0, 1, 1, 2, 3], [False, True, True, True, True, True, True, False])
    assert [g.tolist() for g in enrol(p, 1)] == [[1], [4], [6]]
    assert [g.tolist() for g in enrol(p, 9)] == [[1, 2], [4], [6]]


def test_advice_rests_on_data_or_on_the_pack() -> None:
    curve = Curve(np.repeat([1, 0.01, 0], [1000, 4321, 4680]), np.zeros(10_001))
    assert least_threshold(0.02, 10_000, curve, 1e-5) == (1000, False)
    assert least_threshold(0.005, 10_000, curve, 1e-5) == (5350, False)
    assert least_threshold(1e-5, 10_000, curve, 1e-5) == (7000, True)
    assert least_threshold(2e-6, 10_000, curve, 1e-5) == (7700, True)
    assert least_threshold(5e-7, 10_000, curve, 1e-5) == (0, True)
    p = photos([0, 0, 1, 1])
    groups = enrol(p, 1)
    score = best(of(np.zeros((4, 4), int)), groups)
    wanted = {"searchesPerDay": 1000.0, "alarmsPerDay": 1.0, "gallery": 100}
    found = identify(p, groups, score)
    advice = advise(p, groups, score, found, wanted, 10_000, curve, 1e-5)
    rows = [(g["n"], g["threshold"], g["stated"], "fpir" in g) for g in advice["galleries"]]
    # FMR 5.0e-4 for two persons has too few pairs behind it, and so has 1.0e-5 for a hundred.
    assert rows == [(2, 5350, True, True), (100, 7000, True, False)]


def test_spread_is_the_corrected_gini() -> None:
    rates = [Rate(0.1), Rate(0.2), Rate(0.4)]
    assert spread(rates) == {"groups": 3, "gini": pytest.approx(4 * 0.3 / (2 * 0.7) / 2), "ratio": pytest.approx(4)}
    assert spread([Rate(0.1), Rate(0.1)])["gini"] == 0


def test_list_of_pairs_is_decided_by_folds(tmp_path: Path, saved: Saved) -> None:
    lab = load(saved(drawn(persons=4, each=3)))
    file = tmp_path / "pairs.txt"
    names = replace(lab, file=np.array([f"p{i // 3:03}_{i % 3 + 1:04}.jpg" for i in range(12)]))
    file.write_text("2\t2\np000 1 2\np001\t1\t3\np000 1 p001 1\np002 2 p003 3\n\n"
                    "p002 1 2\np003 1 2\np000 2 p002 1\np001 1 p003 1\n")  # fmt: skip
    pairs = read_pairs(file, names)
    assert pairs.first.tolist() == [0, 3, 0, 7, 6, 9, 1, 3] and pairs.fold.tolist() == [0] * 4 + [1] * 4
    scores = np.zeros((12, 12), int)
    scores[0, 1], scores[3, 5], scores[0, 3], scores[7, 11] = 900, 400, 300, 100
    scores[6, 7], scores[9, 10], scores[1, 6], scores[3, 9] = 800, 700, 600, 100
    p = photos([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [i != 7 for i in range(12)])
    e, folds = compare_pairs(p, pairs, of(scores))
    v = verify(e, (500,), ())
    # Photograph 7 has no face: a pair of each kind fails, and is never a match.
    assert (v["matedPairs"], v["matedPairsFailed"], v["nonMatedPairs"], v["nonMatedPairsFailed"]) == (3, 1, 3, 1)
    a = v["atThresholds"][0]
    assert (a["fmr"].events, a["fnmr"].events, "fmrMeanOverPersons" in a) == (1, 1, False)
    # Fold 0 is decided at 650, the middle of 601 to 700, best on fold 1: 3 of 4 right. Fold 1 at 350: 2 of 4.
    assert folds == {
        "folds": 2, "meanShareRight": 0.625, "standardError": pytest.approx(0.125), "thresholdMin": 350,
        "thresholdMax": 650,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the first line is not the number"),
        ("many 3\n", "the first line is not the number"),
        ("1 2 3\n", "the first line is not the number"),
        ("1 99999999\n", "at most 1000000"),
        ("1\np000 1\n", "line 2: it is not two numbers"),
        ("1\np000 1 ²\n", "line 2: it is not two numbers"),
        ("1\np000 1 " + 5000 * "9" + "\n", "line 2: it is not two numbers"),
        (5000 * "9" + "\n", "the first line is not the number"),
        ("1\np000 1 9\n", "line 2: there is no photograph 9 of 'p000'"),
        ("1\n../p 1 9\n", "line 2: there is no photograph 1 of '../p'"),
        ("1\np000 1 1\n", "line 2: it is a photograph with itself"),
        ("1\np000 1 2\n", "has 1 pairs; its first line says 1 folds of 1 and 1"),
        ("1\np000 1 2\np001 1 2\n", "has a fold without 1 pairs of each kind"),
    ],
)
def test_bad_lists_name_the_line(tmp_path: Path, saved: Saved, text: str, says: str) -> None:
    lab = load(saved(drawn(persons=4, each=3)))
    file = tmp_path / "pairs.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=re.escape(says)):
        read_pairs(file, replace(lab, file=np.array([f"p{i // 3:03}_{i % 3 + 1:04}.jpg" for i in range(12)])))
