"""The fits of a pack, their tables and the texts that a manifest has about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._faces import GRADES, WEIGHED, FaceFit, QualityFit, Specimens, fit_faces, fit_quality, specimens
from ._file import Flags, Lab, LabError, Photos, Singles
from ._fit import (
    ANCHORS,
    FOLDS,
    HELD_PHOTOS,
    PERSONS_MIN,
    STATED_FMR,
    SUBJECT_DRAWS,
    Fit,
    Held,
    RuleTest,
    cross_fitted,
    cross_test,
    fit_means,
    fit_scores,
    project,
    spectrum,
    stated_cosine,
)  # fmt: skip
from ._rate import Rate
from ._score import PHOTOS_MAX, STATED
from ._tables import Table
from ._verify import compare_all, verify

_PROJECTED_RATES = (1e-3, 1e-4, 1e-5)
_WRITTEN = "Written by facet-lab calibrate."


@dataclass
class Calibration:
    """The parts of a manifest, and the tables to print."""

    fit: dict[str, Any]
    projection: Singles | None
    parts: list[str | Table]


def calibrate(lab: Lab, dataset: str, with_projection: bool) -> Calibration:
    """Fits points, spectrum, evidence, least norm and quality, and with with_projection the projection."""
    if lab.fit is None:
        raise LabError("the file has no detections to fit to: facet models extract without --only-rates writes them")
    persons = len(np.unique(lab.fit.person))
    if persons < PERSONS_MIN:
        raise LabError(f"{persons} persons are too few for a fit: it needs {PERSONS_MIN}")
    photos, out = lab.fit, Calibration({}, None, [])
    if with_projection:
        photos = _project(lab, photos, out)
    if photos.template.shape[1] == 0:
        raise LabError("the pack's projection is not fitted yet: add --projection")
    one = fit_scores(photos)
    subjects = fit_means(photos, one)
    held, rule = cross_test(photos)
    out.parts += [_anchors(one), _anchor_table(one, held), *_rule_parts(rule)]
    out.fit["calibration"] = _calibration(dataset, photos, one, subjects, held, rule)
    out.fit["spectrum"] = spectrum(photos)
    s = specimens(lab, photos, out.projection)
    cosine = stated_cosine(one)
    faces = fit_faces(s, cosine)
    quality = fit_quality(s, cosine, faces)
    shares = _shares(s, faces)
    faces.evidence["data"] = _evidence_data(dataset, s, faces, shares)
    out.fit["minNorm"], out.fit["evidence"] = faces.min_norm, faces.evidence
    out.fit["quality"] = {
        "bias": quality.logistic.bias,
        "weights": dict(sorted(zip(WEIGHED, map(float, quality.logistic.weights), strict=True))),
        "data": _quality_data(dataset, quality),
    }
    out.parts += _face_parts(s, faces, quality, shares)
    return out


def _rate(rate: Rate) -> str:
    return f"{rate}, {rate.events} pairs"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _project(lab: Lab, photos: Photos, out: Calibration) -> Photos:
    if photos.both is None:
        raise LabError(f"pack {lab.manifest.get('name')} has one embedder, and so no projection")
    rows = int(lab.manifest["joined"]["projection"]["rows"])
    out.projection, kept = project(photos.both[photos.acquired], rows)
    columns, n = photos.both.shape[1], int(photos.acquired.sum())
    tested = verify(compare_all(photos, cross_fitted(photos, rows)), (), _PROJECTED_RATES)
    t = Table("FMR at most", "score", "FMR [95 %]", "FNMR [95 %]")
    for a in tested["atFMR"]:
        t.add(f"{a['fmrMax']:.0e}", a["threshold"], _rate(a["fmr"]), a["fnmr"])
    out.parts += [
        f"{columns} values projected to {rows}, which have {100 * kept:.1f} % of the squared norm; "
        f"fitted on {n} photographs of {len(lab.persons)} persons",
        f"on persons that were not fitted, {FOLDS} folds: EER {tested['eer']}; {tested['matedPairs']} mated pairs, "
        f"{tested['nonMatedPairs']} non-mated ones",
        t,
    ]
    return photos.projected(out.projection)


def _anchors(one: Fit) -> str:
    return (
        f"fitted on {one.persons} persons, {one.pairs} non-mated pairs; tail from cosine {one.tail.cosine:.4f} on: "
        f"shape {one.tail.shape:.3f}, scale {one.tail.scale:.4f}"
    )


def _anchor_table(one: Fit, held: list[Held]) -> Table:
    t = Table("score", "FMR", "cosine", "fitted on half A", "FMR on half B [95 %]", "fitted on half B",
              "FMR on half A [95 %]")  # fmt: skip
    for i, (score, fmr) in enumerate(ANCHORS.items()):
        halves = [c for h in held for c in (f"{h.fit.cosines[i]:.4f}", _rate(h.at[i]["fmr"]))]
        t.add(score, f"{fmr:.0e}", f"{one.cosines[i]:.4f}", *halves)
    return t


def _rule_parts(rule: RuleTest) -> list[str | Table]:
    t = Table("photographs", "comparisons", *(f"FMR at {s} (best alone)" for s in ANCHORS))
    for n in range(1, PHOTOS_MAX + 1):
        t.add(n, rule.pairs[n], *(f"{rule.fmr(n, s):.1e} ({rule.fmr(n, s, 1):.1e})" for s in ANCHORS))
    title = (
        "several photographs of a person: the larger of the best photograph's and the mean's score, on the halves "
        f"that were not fitted, {SUBJECT_DRAWS} draws"
    )
    if not rule.mated_pairs:
        return [title, t, f"no person has {HELD_PHOTOS} photographs: FNMR was not measured"]
    rates = list(ANCHORS.values())[1:4]
    m = Table("photographs", *(f"at FMR {r:.0e}" for r in rates))
    for n in range(1, PHOTOS_MAX + 1):
        cells = []
        for r in rates:
            (fnmr, at), (best, best_at) = rule.fnmr_at(n, r, 0), rule.fnmr_at(n, r, 1)
            cells.append(f"{fnmr:.4f} at {at} ({best:.4f} at {best_at})")
        m.add(n, *cells)
    second = f"FNMR of {rule.mated_pairs} comparisons at equal measured FMR, with its threshold (best alone)"
    return [title, t, second, m]


def _calibration(
    dataset: str, photos: Photos, one: Fit, subjects: dict[int, Fit], held: list[Held], rule: RuleTest
) -> dict[str, Any]:
    at = list(ANCHORS).index(STATED)
    tests = " and ".join(_rate(h.at[at]["fmr"]) for h in held)
    data = (
        f"{dataset}: {int(photos.acquired.sum())} of {len(photos.acquired)} photographs with a face, {one.persons} "
        f"persons, this pack and pipeline, {one.pairs} non-mated pairs, each pair of persons with the same weight. "
        "Scores 4000 to 8000 stand for false match rates of 1e-2 to 1e-6: to 1e-3 counted, beyond by a generalised "
        "Pareto distribution fitted to the most alike 1e-3 (probability-weighted moments; shape "
        f"{one.tail.shape:.3f}). Tested by fits on one half of the persons: on the other half 7000 has the FMR {tests} "
        f"(all pairs with the same weight). {_WRITTEN}"
    )
    out: dict[str, Any] = {"fmr7000": STATED_FMR, "data": data, "points": one.points()}
    if subjects:
        out["subjects"] = [
            {"photos": n, "fmr7000": float(f"{max(rule.fmr(n, STATED), STATED_FMR):.1e}"), "points": f.points()}
            for n, f in subjects.items()
        ]
    return out


def _shares(s: Specimens, f: FaceFit) -> tuple[float, float, float]:
    """Returns the shares of photographs, copies and shuffled copies that count as faces."""
    is_face, _ = f.judge(s)

    def share(of: Flags) -> float:
        return float(is_face[of].mean()) if of.any() else 0.0

    return share(s.photographs), share(s.copies), share(s.shuffled)


def _evidence_data(dataset: str, s: Specimens, f: FaceFit, shares: tuple[float, float, float]) -> str:
    found, copies, shuffled = map(_percent, shares)
    return (
        f"{dataset}: {s.photographs.sum()} faces as photographed and {s.copies.sum()} spoilt copies, {s.turned.sum()} "
        f"detections on the photographs turned by 90, 180 and 270 degrees, {s.shuffled.sum()} on copies with shuffled "
        "blocks. Upright: logistic fit; at most 1 in 1000 detections of the wrong way up and 99 % of the photographs "
        f"count as upright at once; {_percent(f.upright)} of the photographs do, without the norm "
        f"{_percent(f.by_shape)}. Least norm, the unit of norms: where one comparison in 50 reaches 7000, or where 1 "
        f"in 1000 photographs is refused, if that is less; from {s.pairs} comparisons, whose success the norm tells "
        f"with an AUC of {f.norm_auc:.3f}. Face: not fitted but for that unit; {found} of the photographs, {copies} "
        f"of the copies and {shuffled} of the shuffled ones count as faces. {_WRITTEN}"
    )


def _quality_data(dataset: str, q: QualityFit) -> str:
    reach = ", ".join(f"to {g:g} {100 * r:.0f} %" for g, r in zip(GRADES[1:], q.reach, strict=True))
    good = np.array(GRADES[:-1]) >= 0.45
    accepted, reached = q.share[good].sum(), (q.share * q.reach)[good].sum()
    return (
        "The probability that a comparison with another photograph of the same person reaches score 7000. "
        f"{dataset}: logistic fit on {q.faces} faces of {q.persons} persons, {q.photographs} of them as photographed, "
        "the others spoilt copies (out of focus, moved, few pixels, dark, too bright, flat, noisy, strongly "
        f"compressed, partly covered, turned aside), in {q.comparisons} comparisons. Tested by fits on one half of "
        f"the persons on the other half: AUC {q.auc:.3f}; of the comparisons of faces up to a quality reach 7000: "
        f"{reach}. {100 * accepted:.0f} % of the faces have .45 or more, of whose comparisons "
        f"{100 * reached / max(accepted, 1e-9):.0f} % reach 7000. {_WRITTEN}"
    )


def _face_parts(s: Specimens, f: FaceFit, q: QualityFit, shares: tuple[float, float, float]) -> list[str | Table]:
    photographs, copies, turned = s.photographs.sum(), s.copies.sum(), s.turned.sum()
    t = Table("fitted", "value", "from")
    t.add("least norm", f"{f.min_norm:.3g}", f"{s.pairs} comparisons of {photographs + copies} faces, AUC "
          f"{f.norm_auc:.3f}; refuses {_percent(f.refused)} of the photographs")  # fmt: skip
    for what, u, share in (
        ("upright", f.evidence["upright"], f.upright),
        ("upright without norm", f.shape, f.by_shape),
    ):
        value = (
            f"norm {u['norm']:.3g}, doubt {u['doubt']:.3g}, eyes {u['eyes']:.3g}, below {u['eyesBelow']:.3g}, "
            f"odds {u['odds']:.3g}, least {u['least']:.3g}"
        )
        t.add(what, value, f"{photographs} photographs, {_percent(share)} at once; {turned} of the wrong way up")
    face = f.evidence["face"]
    value = ", ".join(f"{k} {face[k]:.3g}" for k in ("norm", "doubt", "sure", "even", "slope"))
    found, of_copies, of_shuffled = map(_percent, shares)
    t.add("face", value, f"norm in units of {f.evidence['normUnit']:.3g}; faces are {found} of the photographs, "
          f"{of_copies} of {copies} copies, {of_shuffled} of {s.shuffled.sum()} shuffled")  # fmt: skip
    t.add("quality", f"bias {q.logistic.bias:.3f}", f"{q.comparisons} comparisons of {q.faces} faces of {q.persons} "
          f"persons; on the other halves AUC {q.auc:.3f}")  # fmt: skip
    for name, w in zip(WEIGHED, q.logistic.weights, strict=True):
        t.add("", f"{name} {w:.3f}", "")
    g = Table("quality up to", "faces", "comparisons that reach 7000")
    for grade, share, reach in zip(GRADES[1:], q.share, q.reach, strict=True):
        g.add(f"{grade:g}", _percent(share), _percent(reach))
    title = (
        f"faces: {photographs} as photographed, {copies} copies, {turned} detections of the wrong way up, "
        f"{s.shuffled.sum()} on shuffled copies; {s.pairs} comparisons"
    )
    return [title, t, g]
