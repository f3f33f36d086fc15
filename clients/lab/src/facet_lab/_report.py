"""A page of what was measured, as Markdown with pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from . import _plot
from ._identify import false_positive, least_threshold
from ._rate import EVENTS_MIN, RESAMPLES, percent
from ._score import STATED
from ._tables import Table, describe, discard_table, rate_table, size_table, target_table
from ._verify import Curve

_SIZES = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
_FPIR = (0.1, 0.01)


def report(file: Path, document: dict[str, Any], curve: Curve) -> None:
    """Writes the page, and pictures/det.svg and pictures/discard.svg beside it."""
    pictures = file.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    _plot.det(pictures / "det.svg", [document])
    _plot.discard(pictures / "discard.svg", document["allPairs"]["errorVersusDiscard"])
    file.write_text("\n\n".join(_page(document, curve)) + "\n", encoding="utf-8")


def _page(document: dict[str, Any], curve: Curve) -> list[str]:
    pack, data, v, found = (document[k] for k in ("pack", "data", "allPairs", "identification"))
    stated = next(a for a in v["atThresholds"] if a["threshold"] == STATED)
    parts = [
        "# Measured error rates",
        f"`facet-lab accuracy --report` wrote this page. Photographs: {data['name'] or 'not named'}; "
        f"{data['photographs']:,} of {data['persons']:,} persons. Pack {pack['name']} {pack['version']} "
        f"({pack['id'][:12]}), templates of {pack['dim']} numbers, JPEG by {pack['jpegDecoder']}.",
        f"- **Verification (1:1)**: at {STATED}, {stated['fmr']} of the comparisons of two persons match (FMR), and "
        f"{stated['fnmr']} of those of one person do not (FNMR; {stated['fnmrMeanOverPersons']} as the mean over "
        f"persons). EER {v['eer']}.\n"
        f"- **Identification (1:N)**: among {found['galleries'][-1]['n']:,} persons the right one is first in "
        f"{found['galleries'][-1]['rank1']} of the searches.\n"
        f"- **Failure to acquire**: {data['fta'].events} of {data['fta'].trials:,} photographs (FTA {data['fta']}).",
        "The terms are those of ISO/IEC 19795-1. A comparison matches if its score is at or above the threshold. GFAR "
        "and GFRR count pairs without a face, too: they do not match. In brackets are 95 % intervals: persons are "
        f"drawn with replacement {RESAMPLES} times, with all their photographs; no interval is narrower than Wilson's.",
    ]
    if listed := document.get("list"):
        parts += ["## The list of pairs", describe(listed) + ".", rate_table(listed).markdown()]
    parts += ["## Every photograph with every other one", describe(v) + ".", rate_table(v).markdown()]
    parts += ["![DET curve](pictures/det.svg)", "The lowest threshold whose FMR is at most", target_table(v).markdown()]
    parts += [f"The pack says of its calibration:\n\n> {pack['calibration']}", "## Which threshold for a gallery of N"]
    parts += [
        "FPIR ≈ 1 − (1 − FMR)^N, the share of searches by people who are not enrolled that find somebody among N "
        f"persons. † More persons than were searched. ‡ The FMR rests on fewer than {EVENTS_MIN} false matches.",
        _galleries(v, found["galleries"][-1]["n"]).markdown(),
        "The lowest threshold for an FPIR, and the FNMR there. ‡ From the pack's calibration. *none*: neither these "
        "photographs nor the pack show so low a rate.",
        _thresholds(v, pack["statedFMR7000"], curve).markdown(),
        "Searches, with the first photograph of each person enrolled. An equal score counts against the person.",
        size_table(found, v["atThresholds"]).markdown(),
        "## Quality",
        f"FNMR at {STATED} if the pairs with the lowest quality are not compared:",
        discard_table(v["errorVersusDiscard"]).markdown(),
        "![FNMR over the share of discarded pairs](pictures/discard.svg)",
    ]
    return parts


def _galleries(v: dict[str, Any], searched: int) -> Table:
    marks = ("" if a["fmr"].events >= EVENTS_MIN else " ‡" for a in v["atThresholds"])
    head = (
        f"{a['threshold']} (FMR {percent(a['fmr'].value)}){m}" for a, m in zip(v["atThresholds"], marks, strict=True)
    )
    t = Table("N", *head)
    for n in _SIZES:
        cells = (percent(false_positive(a["fmr"].value, n)) for a in v["atThresholds"])
        t.add(f"{n:,}" + (" †" if n > searched else ""), *cells)
    return t


def _thresholds(v: dict[str, Any], stated: float, curve: Curve) -> Table:
    t = Table("N", *(text for f in _FPIR for text in (f"FPIR ≤ {100 * f:g} %", "FNMR there")))
    for n in _SIZES:
        cells = []
        for f in _FPIR:
            at, by_pack = least_threshold(-math.expm1(math.log1p(-f) / n), v["nonMatedPairs"], curve, stated)
            cells += [f"{at}{' ‡' if by_pack else ''}", percent(curve.fnmr[at])] if at else ["none", "–"]
        t.add(f"{n:,}", *cells)
    return t
