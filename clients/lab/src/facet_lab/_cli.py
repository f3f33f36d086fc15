"""The command facet-lab."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from . import _plot
from ._calibrate import calibrate
from ._file import Lab, LabError, Photos, load
from ._fit import FOLDS, cross_fitted
from ._groups import compare_groups, read_groups
from ._identify import advise, best, end_to_end, enrol, identify, with_means
from ._manifest import write
from ._pairs import compare_pairs, read_pairs
from ._rate import EVENTS_MIN, Rate, percent, share, with_wilson
from ._report import report
from ._score import STATED, Compare, of_manifest
from ._tables import (
    Table,
    advice_table,
    describe,
    discard_table,
    group_table,
    pack_table,
    rate_table,
    size_table,
    spread_table,
    target_table,
)  # fmt: skip
from ._verify import compare_all, curve_of, verify

_QUALITY_DEFAULT = 0.45  # of an enrolment in the service
_DOCUMENT_MAX = 16 << 20
_INTERVALS = "In brackets: 95 % intervals, by resampling of persons."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        args.run(args)
    except (LabError, OSError, MemoryError) as e:
        print(f"facet-lab: {e or 'there is too little memory'}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="facet-lab", description="Rates and fits of a file that "
                                     "facet models extract wrote.")  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, files: str = "FILE", plot: bool = True) -> argparse.ArgumentParser:
        p = commands.add_parser(name, help=text, description=text)
        p.set_defaults(run=run)
        if files == "FILE":
            p.add_argument("file", metavar="FILE", type=Path, help="file of facet models extract, .npz")
            p.add_argument("--json", type=Path, help="JSON file to write")
            p.add_argument("--quality-min", type=_share, help="faces below this quality count as not acquired")
            p.add_argument("--cross-fit", action="store_true", help="score by fits to other persons, not by the pack")
            p.add_argument("--dataset", default="", help="what the photographs are, in words")
            if plot:
                p.add_argument("--plot", type=_picture, help="picture to write, .svg or .png")
        return p

    p = command("accuracy", _accuracy, "false match and false non-match rates of all pairs (1:1)")
    p.add_argument("--pairs", type=Path, help="list of pairs to compare, too, in the format of LFW (pairs.txt)")
    p.add_argument("--report", type=_page, help="Markdown page to write, .md, with its plots in pictures/ beside it")
    p = command("identify", _identify, "rates of searches in galleries of several sizes (1:N)")
    p.add_argument("--photos", type=_count, default=1, help="photographs with which a person is enrolled")
    p.add_argument("--searches", type=float, default=0, help="searches a day of people who are not enrolled")
    p.add_argument("--alarms", type=float, default=1, help="false alarms a day that are bearable")
    p.add_argument("--gallery", type=_count, default=0, help="number of persons to advise on, beside those measured")
    p = command("groups", _groups, "rates of groups of persons apart", plot=False)
    p.add_argument("groups", metavar="CSV", type=Path, help="list with the header person,ATTRIBUTE,…")
    command("quality", _quality, "what the quality and the defects tell")
    p = command("calibrate", _calibrate, "fit scores, quality and evidence of the pack", files="")
    p.add_argument("file", metavar="FILE", type=Path, help="file of facet models extract, .npz")
    p.add_argument("--dataset", default="photographs of persons", help="what the photographs are, for the manifest")
    p.add_argument("--projection", action="store_true", help="fit the projection of a pack with two embedders first")
    p.add_argument("--write", type=Path, help="manifest to put the fits into; the rest of it stays as it is")
    p.add_argument("--json", type=Path, help="JSON file to write")
    p = command("plot", _compare, "packs side by side: a table, and one picture of their curves", files="")
    p.add_argument("files", metavar="FILE.json", type=Path, nargs="+", help="JSON files of facet-lab accuracy")
    p.add_argument("--out", type=_picture, help="picture to write, .svg or .png")
    return parser


def _share(text: str) -> float:
    if not 0 <= (value := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return value


def _count(text: str) -> int:
    if not 1 <= (value := int(text)) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return value


def _picture(text: str) -> Path:
    if Path(text).suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"{text}: the file's name must end in .svg or .png")
    return Path(text)


def _page(text: str) -> Path:
    if Path(text).suffix != ".md":
        raise argparse.ArgumentTypeError(f"{text}: the file's name must end in .md")
    return Path(text)


class _Measured:
    """A file with the faces that count, and the document to write."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.lab: Lab = load(args.file)
        lab, least = self.lab, args.quality_min
        if least is None:
            least = 0 if lab.faces == "middle" else _QUALITY_DEFAULT
        self.photos, poor = lab.of_quality(least)
        if self.photos.template.shape[1] == 0 and not args.cross_fit:
            raise LabError("the pack's projection is not fitted yet: facet-lab calibrate --projection does that")
        if len(np.unique(self.photos.person[self.photos.acquired])) < 2:
            raise LabError(f"{args.file.name} has faces of fewer than two persons: nothing can be compared")
        self.one, self.of_mean = of_manifest(lab.manifest)
        self.compare: Compare = self.one.compare(self.photos.template)
        if args.cross_fit:
            joined = lab.manifest.get("joined")
            self.compare = cross_fitted(self.photos, joined and int(joined["projection"]["rows"]))
        n, counts = len(lab.outcome), {o: int((lab.outcome == o).sum()) for o in set(lab.outcome)}
        failed = n - int(self.photos.acquired.sum())
        manifest = lab.manifest
        self.document: dict[str, Any] = {
            "pack": {
                "name": manifest.get("name"), "version": manifest.get("version"), "id": lab.identity,
                "dim": int(self.photos.template.shape[1]), "statedFMR7000": manifest["calibration"]["fmr7000"],
                "jpegDecoder": lab.decoder, "calibration": manifest["calibration"].get("data", ""),
            },
            "data": {
                "name": args.dataset, "persons": len(lab.persons), "photographs": n,
                "fta": with_wilson(share(failed, n)), "withoutFace": counts.get("no face", 0),
                "noImage": counts.get("no image", 0), "belowQualityMin": poor,
                "severalFaces": counts.get("several faces", 0), "chosenOfSeveral": int(lab.chosen.sum()),
                "notTheMiddleOne": int(lab.aside.sum()), "faces": lab.faces, "qualityMin": least,
                "crossFit": args.cross_fit,
            },
        }  # fmt: skip

    def head(self) -> list[str | Table]:
        p, d = self.document["pack"], self.document["data"]
        lines = (
            f"pack {p['name']} {p['version']} ({p['id'][:12]}), {d['persons']} persons, "
            f"{d['photographs']} photographs, of which {d['fta'].events} give no face: FTA {d['fta']}\n"
            f"without a face {d['withoutFace']}, unreadable {d['noImage']}, poor {d['belowQualityMin']}, several faces "
            f"{d['severalFaces']}; one of several taken {d['chosenOfSeveral']}; another one than the middle one taken "
            f"{d['notTheMiddleOne']}"
        )
        if d["crossFit"]:
            lines += (
                f"\nscores fitted in {FOLDS} parts of the persons, each comparison by a fit that saw neither person"
            )
        return [lines]

    def verify(self) -> tuple[list[str | Table], Any]:
        evidence = compare_all(self.photos, self.compare)
        v = self.document["allPairs"] = verify(evidence)
        return [
            f"Verification, every pair: {describe(v)}", rate_table(v),
            "FNMR at the lowest threshold whose FMR is at most", target_table(v),
            "FNMR when the mated pairs of the lowest quality are discarded", discard_table(v["errorVersusDiscard"]),
        ], curve_of(evidence.mated, evidence.non_mated)  # fmt: skip


def _print(parts: Sequence[str | Table]) -> None:
    for i, part in enumerate(parts):
        print(("\n" if i and isinstance(part, str) else "") + str(part))


def _write(file: Path | None, document: dict[str, Any]) -> None:
    if file is None:
        return

    def plain(v: Any) -> Any:
        if isinstance(v, Rate):
            return v.json()
        if isinstance(v, np.generic):
            return v.item()
        raise TypeError(f"bug: {type(v)} in the document")

    file.write_text(json.dumps(document, default=plain, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _finish(args: argparse.Namespace, m: _Measured, parts: Sequence[str | Table]) -> None:
    _print([*m.head(), *parts, _INTERVALS])
    _write(args.json, m.document)


def _accuracy(args: argparse.Namespace) -> None:
    m = _Measured(args)
    parts: list[str | Table] = []
    if args.pairs:
        evidence, folds = compare_pairs(m.photos, read_pairs(args.pairs, m.lab), m.compare)
        v = m.document["list"] = {**verify(evidence), "folds": folds}
        parts = [f"Verification, the list of pairs: {describe(v)}", rate_table(v)]
    every, curve = m.verify()
    if args.report:
        enrolled = enrol(m.photos, 1)
        m.document["identification"] = identify(m.photos, enrolled, best(m.compare, enrolled))
        report(args.report, m.document, curve)
    _finish(args, m, parts + every)
    if args.plot:
        _plot.det(args.plot, [m.document])


def _identify(args: argparse.Namespace) -> None:
    if args.searches and not 0 < args.alarms < args.searches:
        raise LabError("--alarms must be more than 0 and less than --searches")
    m = _Measured(args)
    parts, curve = m.verify()
    enrolled = enrol(m.photos, args.photos)
    score = best(m.compare, enrolled)
    found = m.document["identification"] = identify(m.photos, enrolled, score)
    at = m.document["allPairs"]["atThresholds"]
    several = args.photos > 1 and m.photos.template.shape[1] > 0
    parts += ["Identification" + (", by the best of several photographs" if several else ""), size_table(found, at)]
    if several:
        means = identify(m.photos, enrolled, with_means(m.photos, enrolled, score, m.of_mean))
        m.document["identificationSubjectTemplates"] = means
        parts += ["Identification, with subjectTemplates", size_table(means, at)]
    if args.searches:
        wanted = {"searchesPerDay": args.searches, "alarmsPerDay": args.alarms, "gallery": args.gallery}
        pairs, stated = m.document["allPairs"]["nonMatedPairs"], m.document["pack"]["statedFMR7000"]
        a = m.document["advice"] = advise(m.photos, enrolled, score, found, wanted, pairs, curve, stated)
        parts += [f"Thresholds for {args.searches:g} searches a day of people who are not enrolled, of which at most "
                  f"{args.alarms:g} may find somebody (FPIR ≤ {percent(a['fpirMax'])})", advice_table(a)]  # fmt: skip
    if m.lab.faces != "middle":
        e = m.document["endToEnd"] = end_to_end(m.photos, m.compare)
        failed, rank1 = e["failureToEnrol"], e["rank1"]
        least = m.document["data"]["qualityMin"]
        parts.insert(
            0,
            f"End to end, --faces {m.lab.faces} and enrolled from quality {least:g} on: failure to enrol {failed} "
            f"({failed.events} of {failed.trials} first photographs); rank 1 in {rank1} of {rank1.trials:,} searches "
            "with the others",
        )
    _finish(args, m, parts)
    if args.plot:
        _plot.det(args.plot, [m.document])


def _groups(args: argparse.Namespace) -> None:
    m = _Measured(args)
    partitions = read_groups(args.groups, m.lab.persons)
    groups = m.document["groups"] = [compare_groups(m.photos, m.compare, a, g) for a, g in partitions.items()]
    parts: list[str | Table] = []
    for g in groups:
        title = f"Groups by {g['attribute']}, each compared with itself; a rate of fewer than {EVENTS_MIN} errors is "
        title += "not shown"
        parts += [title, group_table(g), f"How far the groups by {g['attribute']} differ", spread_table(g)]
    _finish(args, m, parts)


def _quality(args: argparse.Namespace) -> None:
    m = _Measured(args)
    parts, _ = m.verify()
    faces, photos = m.lab.photos.acquired, m.photos
    quality = m.lab.photos.quality[faces]
    shares = (0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
    t = Table("share of the faces", "quality up to")
    for s, q in zip(shares, np.quantile(quality, shares), strict=True):
        t.add(percent(s), f"{q:.2f}")
    d = Table("defect", "faces", "share")
    counts: dict[str, int] = {}
    for defect in ",".join(m.lab.defects[faces]).split(","):
        counts[defect] = counts.get(defect, 0) + 1
    for defect in sorted(filter(None, counts)):
        d.add(defect, counts[defect], percent(counts[defect] / len(quality)))
    reach = _reach(m, photos)
    m.document["quality"] = {
        "faces": len(quality),
        "quantiles": {str(s): float(np.quantile(quality, s)) for s in shares},
        "defects": {k: v for k, v in counts.items() if k},
    }
    _finish(args, m, [f"Qualities of {len(quality):,} faces", t, "Defects", d,
                      f"Faces by quality, and their comparisons with the person's others that reach {STATED}", reach,
                      *parts[-2:]])  # fmt: skip
    if args.plot:
        _plot.discard(args.plot, m.document["allPairs"]["errorVersusDiscard"])


def _reach(m: _Measured, photos: Photos) -> Table:
    t = Table("quality", "faces", "comparisons", f"reach {STATED}")
    grades = (0, 0.1, 0.3, 0.45, 0.6, 0.8, 0.9, 1.001)
    at = np.flatnonzero(photos.acquired)
    pairs, reached = np.zeros(len(at)), np.zeros(len(at))
    for place in np.split(np.arange(len(at)), np.flatnonzero(np.diff(photos.person[at])) + 1):
        scores = m.compare(at[place], at[place])
        pairs[place], reached[place] = len(place) - 1, (scores >= STATED).sum(axis=1) - (np.diag(scores) >= STATED)
    for low, high in pairwise(grades):
        of = (photos.quality[at] >= low) & (photos.quality[at] < high)
        n = int(pairs[of].sum())
        t.add(f"{low:g} to {min(high, 1):g}", int(of.sum()), f"{n:,}", percent(reached[of].sum() / n) if n else "–")
    return t


def _calibrate(args: argparse.Namespace) -> None:
    found = calibrate(load(args.file), args.dataset, args.projection)
    _print(found.parts)
    _write(args.json, found.fit)
    if args.write:
        names = write(args.write, found.fit, found.projection)
        changed = (
            "the pack's templates are now those of another model"
            if len(names) > 1
            else "the pack's identity has changed"
        )
        print(f"\nwritten to {' and '.join(names)}; {changed}")


def _compare(args: argparse.Namespace) -> None:
    documents = [_document(f) for f in args.files]
    if len(documents) > len(_plot.COLOURS):
        raise LabError(f"{len(documents)} files, the most is {len(_plot.COLOURS)}")
    data = [[d["data"][k] for k in ("name", "persons", "photographs")] for d in documents]
    if any(d != data[0] for d in data):
        raise LabError(f"only measurements of the same photographs can be compared, and these are of {data}")
    _print([pack_table(documents), f"{data[0][2]} photographs of {data[0][1]} persons, every pair. {_INTERVALS}"])
    if args.out:
        _plot.det(args.out, documents)


def _document(file: Path) -> Any:
    def rate(v: dict[str, Any]) -> Any:
        if "value" not in v:
            return v
        interval = v.get("interval95", {})
        return Rate(v["value"], v.get("events", 0), v.get("trials", 0), interval.get("low"), interval.get("high"))

    try:
        if file.stat().st_size > _DOCUMENT_MAX:
            raise LabError(f"{file.name} has more than {_DOCUMENT_MAX >> 20} MB")
        document = json.loads(file.read_text(encoding="utf-8"), object_hook=rate)
        document["allPairs"]["det"], document["pack"]["name"], document["data"]["fta"].events
        return document
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise LabError(f"{file.name} has no measurement of every pair: write it with facet-lab accuracy --json") from e
