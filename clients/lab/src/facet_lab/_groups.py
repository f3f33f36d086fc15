"""Rates of groups of persons, each compared with itself (ISO/IEC 19795-10)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from ._file import LabError, Photos
from ._rate import EVENTS_MIN, Rate
from ._score import Compare
from ._verify import THRESHOLD_LIST, compare_all, verify

_BYTES_MAX = 16 << 20
_ATTRIBUTES_MAX = 16
_GROUPS_MAX = 64

Partitions = dict[str, dict[str, list[int]]]


def read_groups(path: Path, persons: list[str]) -> Partitions:
    """Reads a CSV file with a line for each person: the name of its folder, and its group by each attribute.

    A cell is empty where the group is not known. Returns the indices of each group's persons by attribute.
    """
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise LabError(f"{path.name} has more than {_BYTES_MAX >> 20} MB")
        with path.open(encoding="utf-8-sig", newline="") as f:
            return _parse(csv.reader(f, strict=True), persons, path.name)
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise LabError(f"read groups from {path.name}: {e}") from e


def _parse(lines: Any, persons: list[str], name: str) -> Partitions:
    head: list[str] = next(lines, [])
    if len(head) < 2 or head[0] != "person":
        raise LabError(f"{name}: the header must be person and then one attribute or more, such as person,age")
    if len(head) - 1 > _ATTRIBUTES_MAX or len(set(head)) != len(head):
        raise LabError(f"{name}: there are more than {_ATTRIBUTES_MAX} attributes, or one is there twice")
    place = {p: i for i, p in enumerate(persons)}
    out: Partitions = {attribute: {} for attribute in head[1:]}
    listed: set[str] = set()
    for line in lines:
        where = f"{name}, line {lines.line_num}"
        if len(line) != len(head):
            raise LabError(f"{where}: it has {len(line)} cells, the header has {len(head)}")
        if line[0] not in place:
            raise LabError(f"{where}: there is no folder of the person {line[0]!r}")
        if line[0] in listed:
            raise LabError(f"{where}: the person {line[0]!r} is there twice")
        listed.add(line[0])
        for attribute, group in zip(head[1:], line[1:], strict=True):
            if group:
                out[attribute].setdefault(group, []).append(place[line[0]])
                if len(out[attribute]) > _GROUPS_MAX:
                    raise LabError(f"{where}: {attribute} has more than {_GROUPS_MAX} groups")
    return out


def compare_groups(photos: Photos, compare: Compare, attribute: str, groups: dict[str, list[int]]) -> dict[str, Any]:
    """Measures each group of an attribute. A rate of fewer than EVENTS_MIN errors is left out."""
    found = []
    for name, persons in sorted(groups.items()):
        places = np.flatnonzero(np.isin(photos.person, persons))
        if not len(places):
            continue
        own = photos.part(places)
        _, number = np.unique(own.person, return_inverse=True)
        own = Photos(number, own.acquired, own.quality, own.template, own.both)
        evidence = compare_all(own, lambda i, j, places=places: compare(places[i], places[j]))  # type: ignore[misc]
        rates = verify(evidence, targets=())
        at = [
            {"threshold": a["threshold"]} | {k: a[k] for k in ("fmr", "fnmr") if a[k].events >= EVENTS_MIN}
            for a in rates["atThresholds"]
        ]
        found.append({"name": name, "persons": len(set(persons)), "photographs": len(places),
                      "matedPairs": rates["matedPairs"], "nonMatedPairs": rates["nonMatedPairs"],
                      "atThresholds": at})  # fmt: skip
    spreads = []
    for i, t in enumerate(THRESHOLD_LIST):
        row: dict[str, Any] = {"threshold": t}
        for kind in ("fmr", "fnmr"):
            shown = [g["atThresholds"][i][kind] for g in found if kind in g["atThresholds"][i]]
            if len(shown) > 1:
                row[kind] = spread(shown)
        spreads.append(row)
    return {"attribute": attribute, "groups": found, "spreads": spreads}


def spread(rates: list[Rate]) -> dict[str, Any]:
    """Returns the Gini coefficient, corrected for few groups (Howard et al., arXiv:2203.05051), and the ratio."""
    v = np.array([r.value for r in rates])
    n = len(v)
    gini = np.abs(v[:, None] - v[None, :]).sum() / (2 * n * v.sum()) * n / (n - 1)
    return {"groups": n, "gini": float(gini), "ratio": float(v.max() / v.min())}
