"""Fits of the evidence for a face, the least norm and the quality, to photographs and spoilt copies of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ._file import Flags, Floats, Lab, LabError, Photos, Seen, Singles, projected
from ._fit import SPLIT_SEED

AS_PHOTOGRAPHED, TURNED, SHUFFLED = "as photographed", "turned", "shuffled"
GRADES = (0, 0.1, 0.3, 0.45, 0.6, 0.8, 0.9, 1)
# The features that a quality is fitted to. The eyes' distance belongs to a data set, and the frontal degree adds
# nothing.
WEIGHED = (
    "norm", "score", "sharpness", "directionalSharpness", "isotropy", "fineness", "smear", "contrast", "brightness",
    "unevenness", "clipped", "doubt",
)  # fmt: skip
# The weights for a face of packs whose manifest has none.
USUAL_FACE = {"norm": 2.7, "normUsual": 1.39, "doubt": -3, "sure": 6.5, "even": 2.7, "slope": 1.8}
_MATES_MAX = 10
_SPECIMENS_MIN = 50
_LIKENESS_LEAST = 0.5
_WRONG_WAY_MOST = 1e-3  # share of detections of the wrong way up that may count as upright
_UNSURE_LEAST = 0.01  # share of the photographs' faces that need not count as upright at once
_UNCOMPARABLE = 0.02  # probability to reach 7000 at the least norm
_REFUSED_MOST = 1e-3
_NORM_TELLS = 0.6  # least AUC
_RIDGE = 1e-4


@dataclass(frozen=True)
class Logistic:
    """P(true) = 1 / (1 + exp(−(bias + Σ weights × x)))."""

    bias: float
    weights: Floats

    def sum(self, x: Floats) -> Floats:
        return np.asarray(self.bias + x @ self.weights)

    def auc(self, x: Floats, share: Floats) -> float:
        """Returns the probability that a true case has a larger sum than a false one, ties counted half."""
        _, place = np.unique(self.sum(x), return_inverse=True)
        yes, no = np.bincount(place, share), np.bincount(place, 1 - share)
        return float((yes * (np.cumsum(no) - no / 2)).sum() / (yes.sum() * no.sum()))


def fit_logistic(x: Floats, share: Floats, weight: Floats) -> Logistic:
    """Returns the regression with the largest likelihood less a small ridge on standardised measurements."""
    w = weight / weight.sum()
    mean = w @ x
    spread = np.sqrt(w @ (x - mean) ** 2)
    spread[~(spread > 1e-9)] = 1
    z = np.column_stack([np.ones(len(x)), (x - mean) / spread])

    def loss(at: Floats) -> float:
        return float(w @ (np.logaddexp(0, z @ at) - share * (z @ at)) + _RIDGE / 2 * at @ at)

    def slope(at: Floats) -> Floats:
        return np.asarray(z.T @ (w * (expit(z @ at) - share)) + _RIDGE * at)

    def bend(at: Floats) -> Floats:
        p = expit(z @ at)
        return np.asarray((z.T * (w * p * (1 - p))) @ z + _RIDGE * np.eye(len(at)))

    found = minimize(loss, np.zeros(z.shape[1]), jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-10})
    weights = found.x[1:] / spread
    bias = float(found.x[0] - weights @ mean)
    if not np.isfinite(bias):
        raise LabError("the cases do not determine a logistic regression")
    return Logistic(bias, weights)


def _rounded(v: float) -> float:
    return float(f"{v:.3g}")


def _quantile(values: Floats, share: float) -> float:
    return float(np.sort(values)[min(int(share * len(values)), len(values) - 1)])


@dataclass
class Specimens:
    """The detections with what the fits need of each."""

    seen: Seen
    names: list[str]
    person: np.ndarray[Any, Any]  # -1 where no upright face is
    mates: list[Singles]  # the person's faces on other photographs
    photographs: Flags = field(init=False)
    copies: Flags = field(init=False)
    turned: Flags = field(init=False)
    shuffled: Flags = field(init=False)

    def __post_init__(self) -> None:
        kind = self.seen.kind
        self.photographs, self.turned, self.shuffled = kind == AS_PHOTOGRAPHED, kind == TURNED, kind == SHUFFLED
        self.copies = ~(self.photographs | self.turned | self.shuffled)

    @property
    def faces(self) -> Flags:
        return self.photographs | self.copies

    @property
    def pairs(self) -> int:
        return sum(len(m) for m in self.mates)

    def feature(self, name: str) -> Floats:
        return self.seen.feature[:, self.names.index(name)]

    def reach(self, cosine: float) -> Floats:
        """Returns the share of each face's comparisons with its mates that reach the cosine."""
        out = np.zeros(len(self.person))
        for i in np.flatnonzero(self.faces):
            out[i] = (self.mates[i] @ self.seen.template[i] >= cosine).mean()
        return out


def specimens(lab: Lab, fit: Photos, projection: Singles | None) -> Specimens:
    """Returns the detections of a file; a projection makes their templates anew."""
    seen = lab.seen
    assert seen is not None
    if projection is not None and seen.both is not None:
        seen = Seen(seen.photo, seen.kind, projected(seen.both, projection), seen.both, seen.looks, seen.upright,
                    seen.feature)  # fmt: skip
    at = np.flatnonzero(fit.acquired)
    of = {int(p): at[fit.person[at] == p] for p in np.unique(fit.person[at])}
    person = np.where(seen.photo >= 0, fit.person[seen.photo], -1)
    mates = []
    for photo, who in zip(seen.photo, person, strict=True):
        own = of.get(int(who), at[:0])
        mates.append(fit.template[own[own != photo][:_MATES_MAX]])
    s = Specimens(seen, lab.features, person, mates)
    if any(len(mates[i]) == 0 for i in np.flatnonzero(s.faces)):
        raise LabError("a face of the fit has no other photograph of its person")
    return s


@dataclass
class FaceFit:
    """Evidence and least norm, and what their fit found."""

    evidence: dict[str, Any]
    min_norm: float
    norm_auc: float
    refused: float = 0
    shape: dict[str, float] = field(default_factory=dict)  # the uprightness without the norm
    upright: float = 0
    by_shape: float = 0

    def judge(self, s: Specimens) -> tuple[Flags, Floats]:
        """Reports which detections count as faces, and returns the detector's scores as the evidence weighs them."""
        face, norm, odds = self.evidence["face"], s.feature("norm"), s.seen.looks[:, 0]
        rest = face["doubt"] * s.seen.upright[:, 0]
        rest = rest + face["norm"] * (norm / self.evidence["normUnit"] - face["normUsual"])
        odds = np.where(odds + rest < face["sure"], s.seen.looks.mean(axis=1), odds)
        likeness = expit(face["slope"] * (odds + rest - face["even"]))
        return (norm >= self.min_norm) & (likeness >= _LIKENESS_LEAST), expit(odds)


def fit_faces(s: Specimens, cosine: float) -> FaceFit:
    """Fits the evidence and the least norm. cosine is that of score 7000."""
    photographs, turned = int(s.photographs.sum()), int(s.turned.sum())
    if photographs < _SPECIMENS_MIN or turned < _SPECIMENS_MIN:
        text = f"{photographs} faces and {turned} detections of the wrong way up"
        raise LabError(f"{text} are too few to fit the evidence: it needs {_SPECIMENS_MIN} of each")
    norms = s.feature("norm")[s.photographs]
    f = _min_norm(s, cosine, norms)
    if f.min_norm == 0:
        f.evidence = {"normUnit": _rounded(_quantile(norms, 0.5)), "face": {**USUAL_FACE, "norm": 0}}
    else:
        f.evidence = {"normUnit": f.min_norm, "face": dict(USUAL_FACE)}
    x = np.column_stack([s.seen.upright, s.feature("norm") / f.evidence["normUnit"]])
    f.evidence["upright"], f.upright = _upright(x[s.photographs], x[s.turned])
    f.shape, f.by_shape = _upright(x[s.photographs][:, :4], x[s.turned][:, :4])
    return f


def _min_norm(s: Specimens, cosine: float, norms: Floats) -> FaceFit:
    """Fits the norm below which a face hardly ever reaches 7000, 0 if the norm does not tell."""
    x, share = s.feature("norm")[s.faces][:, None], s.reach(cosine)[s.faces]
    l = fit_logistic(x, share, np.ones(len(x)))  # noqa: E741
    f = FaceFit({}, 0, l.auc(x, share))
    if not (f.norm_auc >= _NORM_TELLS and l.weights[0] > 0):
        return f
    least = (np.log(_UNCOMPARABLE / (1 - _UNCOMPARABLE)) - l.bias) / l.weights[0]
    f.min_norm = _rounded(max(0.0, min(float(least), _quantile(norms, _REFUSED_MOST))))
    f.refused = float((norms < f.min_norm).mean())
    return f


def _upright(right: Floats, wrong: Floats) -> tuple[dict[str, float], float]:
    """Fits the weights of doubt, eyes' distance and place, odds and, if it is there, norm.

    Also returns the share of the right ones that reach the least sum.
    """
    share = np.repeat([1.0, 0.0], [len(right), len(wrong)])
    weight = np.repeat([0.5 / len(right), 0.5 / len(wrong)], [len(right), len(wrong)])
    weights = np.array([_rounded(w) for w in fit_logistic(np.vstack([right, wrong]), share, weight).weights])
    rights, wrongs = right @ weights, wrong @ weights
    least = _rounded(max(_quantile(wrongs, 1 - _WRONG_WAY_MOST), _quantile(rights, _UNSURE_LEAST)))
    doubt, eyes, below, odds, norm = (float(w) for w in [*weights, 0][:5])
    fitted = {"norm": norm, "doubt": doubt, "eyes": eyes, "eyesBelow": below, "odds": odds, "least": least}
    return fitted, float((rights >= least).mean())


@dataclass
class QualityFit:
    """A quality with what its test on the other half of the persons gave."""

    logistic: Logistic
    faces: int
    persons: int
    photographs: int
    comparisons: int
    auc: float
    reach: Floats  # share of comparisons that reach 7000, by grade
    share: Floats  # of the faces, by grade


def fit_quality(s: Specimens, cosine: float, f: FaceFit) -> QualityFit:
    """Fits the probability that a comparison with another photograph of the person reaches score 7000."""
    is_face, score = f.judge(s)
    use = np.flatnonzero(is_face & s.faces)
    if len(use) < _SPECIMENS_MIN:
        raise LabError(f"fit the quality: {len(use)} faces are too few: it needs {_SPECIMENS_MIN}")
    x = np.column_stack([score if name == "score" else s.feature(name) for name in WEIGHED])[use]
    share, person = s.reach(cosine)[use], s.person[use]
    fitted = _fit_rounded(x, share)
    persons = np.random.default_rng([SPLIT_SEED, 1]).permutation(np.unique(person))
    first = np.isin(person, persons[: len(persons) // 2])
    auc, place, reached = 0.0, [], []
    for side in (first, ~first):
        l = _fit_rounded(x[side], share[side])  # noqa: E741
        auc += l.auc(x[~side], share[~side]) / 2
        place.append(np.clip(np.searchsorted(GRADES, expit(l.sum(x[~side])), "right") - 1, 0, len(GRADES) - 2))
        reached.append(share[~side])
    at, n = np.concatenate(place), len(GRADES) - 1
    counts = np.bincount(at, minlength=n)
    reach = np.bincount(at, np.concatenate(reached), n) / np.maximum(counts, 1)
    comparisons = sum(len(s.mates[i]) for i in use)
    return QualityFit(fitted, len(use), len(persons), int(s.photographs[use].sum()), comparisons, auc, reach,
                      counts / len(at))  # fmt: skip


def _fit_rounded(x: Floats, share: Floats) -> Logistic:
    l = fit_logistic(x, share, np.ones(len(x)))  # noqa: E741
    return Logistic(round(l.bias, 3), np.round(l.weights, 3))
