"""Pictures of curves, .svg or .png."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtri

from ._rate import power

_FMR_TICKS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.4)
_FNMR_TICKS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
COLOURS = ("#1f5fb0", "#d06a10", "#2a8a4a", "#8a3aa0", "#808080")


def det(file: Path, documents: list[dict[str, Any]]) -> None:
    """Draws a DET curve for each document; with one, also its thresholds with their intervals."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    ends = ndtri([_FNMR_TICKS[0], _FNMR_TICKS[-1]])
    axes.plot(ends, ends, color="#e0e0e0")
    for document, colour in zip(documents, COLOURS, strict=False):
        points = np.array([[p["fmr"], p["fnmr"]] for p in document["allPairs"]["det"]])
        inner = points[((points > 0) & (points < 1)).all(axis=1)]
        axes.plot(*ndtri(inner.T), color=colour, label=document["pack"]["name"])
    if len(documents) == 1:
        for a in documents[0]["allPairs"]["atThresholds"]:
            fmr, fnmr = a["fmr"], a["fnmr"]
            if not (0 < fmr.value < 1 and 0 < fnmr.value < 1):
                continue
            x, y = ndtri([fmr.value, fnmr.value])
            axes.plot(x, y, "o", color=COLOURS[0], markersize=4)
            axes.annotate(str(a["threshold"]), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
            for line, interval in ((axes.hlines, (y, fmr)), (axes.vlines, (x, fnmr))):
                low, high = np.clip(ndtri([interval[1].low or 0, interval[1].high or 1]), -9, 9)
                line(interval[0], low, high, color="#808080", linewidth=0.7)
    for axis, ticks, set_limits, label in (
        (axes.xaxis, _FMR_TICKS, axes.set_xlim, "false match rate (FMR)"),
        (axes.yaxis, _FNMR_TICKS, axes.set_ylim, "false non-match rate (FNMR)"),
    ):
        names = [f"{100 * t:g} %" if t >= _FNMR_TICKS[0] else power(t) for t in ticks]
        axis.set_ticks(ndtri(ticks), labels=names)
        axis.set_label_text(label)
        set_limits(ndtri(ticks[0]), ndtri(ticks[-1]))
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, file)


def discard(file: Path, curve: list[dict[str, Any]]) -> None:
    """Draws the error-versus-discard curve beside that of a quality which knew the outcome."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    x = np.array([c["discarded"] for c in curve])
    y = np.array([c["fnmr"].value for c in curve])
    axes.plot(100 * x, 100 * y, color=COLOURS[0], label="discarded by the pack's quality")
    perfect = np.maximum(0, (y[0] - x) / (1 - x))
    axes.plot(100 * x, 100 * perfect, color=COLOURS[-1], label="by one that knew the outcome")
    axes.set(xlabel="mated pairs discarded for low quality (%)", ylabel="FNMR at 7000 of those kept (%)")
    axes.legend()
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    # the same picture for the same numbers, and its texts as texts
    with matplotlib.rc_context({"svg.hashsalt": "facet", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else {})
