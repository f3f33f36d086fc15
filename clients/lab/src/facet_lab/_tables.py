"""The tables of rates, as text."""

from __future__ import annotations

from typing import Any

from ._identify import LIST_LENGTH, false_positive
from ._rate import percent, power

NOT_SHOWN = "not shown"


class Table:
    """Rows of cells under a head, printed in columns."""

    def __init__(self, *head: str) -> None:
        self.rows = [list(head)]

    def add(self, *cells: Any) -> None:
        self.rows.append([str(c) for c in cells])

    def __str__(self) -> str:
        widths = [max(len(r[i]) for r in self.rows) for i in range(len(self.rows[0]))]
        lines = ("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in self.rows)
        return "\n".join("  " + line for line in lines)

    def markdown(self) -> str:
        lines = ("| " + " | ".join(r) + " |" for r in [self.rows[0], ["---"] * len(self.rows[0]), *self.rows[1:]])
        return "\n".join(lines)


def describe(v: dict[str, Any]) -> str:
    text = (
        f"{v['matedPairs']:,} mated, {v['nonMatedPairs']:,} non-mated compared; EER {v['eer']} at {v['eerThreshold']}"
    )
    mated, others = v["matedPairsFailed"], v["nonMatedPairsFailed"]
    if mated + others:
        text += f"; {mated:,} mated and {others:,} non-mated pairs lack a face"
    if f := v.get("folds"):
        text += (
            f"; each of {f['folds']} folds decided at the threshold that is best on the others ({f['thresholdMin']} to "
            f"{f['thresholdMax']}): {100 * f['meanShareRight']:.2f} ± {100 * f['standardError']:.2f} % right"
        )
    return text


def rate_table(v: dict[str, Any]) -> Table:
    t = Table("threshold", "FMR", "false matches (pairs of persons)", "FMR, mean over pairs of persons", "FNMR",
              "FNMR, mean over persons", "GFAR", "GFRR")  # fmt: skip
    for a in v["atThresholds"]:
        matches = f"{a['fmr'].events:,} ({a['falseMatchPersonPairs']:,})"
        t.add(a["threshold"], a["fmr"], matches, a.get("fmrMeanOverPersons", "–"), a["fnmr"], a["fnmrMeanOverPersons"],
              percent(a["gfar"].value), percent(a["gfrr"].value))  # fmt: skip
    return t


def target_table(v: dict[str, Any]) -> Table:
    t = Table("FMR", "threshold", "FNMR")
    for a in v["atFMR"]:
        t.add(f"≤ {power(a['fmrMax'])}", a["threshold"], a["fnmr"])
    return t


def discard_table(curve: list[dict[str, Any]]) -> Table:
    t = Table("discarded", "quality kept from", "FNMR at 7000", "pairs kept")
    for i, c in enumerate(curve):
        if i % 2 == 0 or i == 1:  # from none in tenths, and the first twentieth
            fnmr = c["fnmr"]
            t.add(percent(c["discarded"]), f"{c['qualityMin']:.2f}", percent(fnmr.value), f"{fnmr.trials:,}")
    return t


def size_table(found: dict[str, Any], at_thresholds: list[dict[str, Any]]) -> Table:
    t = Table("N", "rank 1", f"rank {LIST_LENGTH}", "threshold", "FNIR", "FPIR", "1 − (1 − FMR)^N")
    for g in found["galleries"]:
        first = [f"{g['n']:,}", g["rank1"], g["rank10"]]
        for a, one in zip(g["atThresholds"], at_thresholds, strict=True):
            expected = percent(false_positive(one["fmr"].value, g["n"]))
            t.add(*first, a["threshold"], a["fnir"], a["fpir"], expected)
            first = ["", "", ""]
    return t


def advice_table(advice: dict[str, Any]) -> Table:
    t = Table("N", "threshold", "rests on", "FPIR measured there", "false alarms a day", "FNIR")
    for g in advice["galleries"]:
        cells = ["none", "–", "–", "–", "–"]
        if g["threshold"]:
            cells[:2] = [str(g["threshold"]), "what the pack states" if g["stated"] else "these photographs"]
        if "fpir" in g:
            cells[2:] = [str(g["fpir"]), f"{g['fpir'].value * advice['searchesPerDay']:.2g}", str(g["fnir"])]
        t.add(f"{g['n']:,}", *cells)
    return t


def group_table(g: dict[str, Any]) -> Table:
    t = Table(g["attribute"], "persons", "photographs", "threshold", "FMR", "FNMR")
    for group in g["groups"]:
        first = [group["name"], f"{group['persons']:,}", f"{group['photographs']:,}"]
        for a in group["atThresholds"]:
            t.add(*first, a["threshold"], a.get("fmr", NOT_SHOWN), a.get("fnmr", NOT_SHOWN))
            first = ["", "", ""]
    return t


def spread_table(g: dict[str, Any]) -> Table:
    t = Table("threshold", "FMR: Gini", "largest / smallest", "FNMR: Gini", "largest / smallest", "groups shown")
    for s in g["spreads"]:
        cells, counts = [], []
        for of in (s.get("fmr"), s.get("fnmr")):
            cells += [f"{of['gini']:.2f}", f"{of['ratio']:.1f}"] if of else [NOT_SHOWN] * 2
            counts.append(of["groups"] if of else 0)
        t.add(s["threshold"], *cells, f"{counts[0]} and {counts[1]} of {len(g['groups'])}")
    return t


def pack_table(documents: list[dict[str, Any]]) -> Table:
    """Returns a table with a column for each pack, from JSON files of accuracy."""
    all_pairs = [d["allPairs"] for d in documents]
    t = Table("", *(d["pack"]["name"] for d in documents))
    t.add("numbers of a template", *(d["pack"]["dim"] for d in documents))
    fitted = ("other persons" if d["data"]["crossFit"] else "the pack's persons" for d in documents)
    t.add("scores fitted on", *fitted)
    t.add("photographs without a face", *(f"{d['data']['fta'].events:,}" for d in documents))
    t.add("EER", *(v["eer"] for v in all_pairs))
    for target in [a["fmrMax"] for a in all_pairs[0]["atFMR"]]:
        found = ([a["fnmr"] for a in v["atFMR"] if a["fmrMax"] == target] for v in all_pairs)
        t.add(f"FNMR at FMR ≤ {power(target)}", *(f[0] if f else NOT_SHOWN for f in found))
    for i, first in enumerate(all_pairs[0]["atThresholds"]):
        at = [v["atThresholds"][i] for v in all_pairs]
        t.add(f"FMR at {first['threshold']}", *(a["fmr"] for a in at))
        t.add("  mean over pairs of persons", *(a.get("fmrMeanOverPersons", NOT_SHOWN) for a in at))
        t.add(f"FNMR at {first['threshold']}", *(a["fnmr"] for a in at))
    return t
