#!/usr/bin/env python3
"""Prints the ten slowest packages of a test run and the tests that it skipped.

usage: scripts/testreport.py FILE.json [PAGE.md]

FILE.json is the output of "go test -json". With CI in the environment it ends with 1 if a test
was skipped that scripts/skips.txt does not list. PAGE.md gets its tables renewed, and the picture
of the layers in its folder pictures.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

# The layers that "make test" runs, the quickest first: name, what it finds, its packages. What no pattern
# matches are units.
LAYERS = [
    ("rules of the tree", "an import against the layers, a name, a page", "internal/lint"),
    ("units", "one function, a format, a part of a node, hostile input", ""),
    ("state machines", "replicas whose states differ, after a restart too", "raftfsm.*"),
    ("computation", "a kernel or a model that differs from its definition", "shard/kernel|engine.*"),
    ("clusters in virtual time", "three to seven nodes: elections, moves, backups, deadlines", "node"),
    ("attacked worlds", "a write that is lost while links and nodes fail", "scripts/sim"),
    ("processes", "the program itself: SIGKILL, disks, certificates, real faces", "internal/e2e|cmd/facet|scripts/(chaos|attack)"),
]
UNITS = 1
PICTURE = "testing.svg"


def layer_of(package):
    return next((i for i, (_, _, pattern) in enumerate(LAYERS) if re.fullmatch(pattern, package)), UNITS)


def brief(doc):
    """Returns the beginning of a package's doc comment, without its name."""
    return re.split(r": |\.$|\. ", re.sub(r"^(Package|Command) \S+ ", "", doc))[0]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def picture(rows):
    """Draws the layers as steps: the lower ones have most tests, the upper ones start most."""
    top, step = 64, 62
    high = top + step * len(rows) + 16
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 {high}" width="980" height="{high}" role="img" aria-label="Layers of the tests">',
        '<style>text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:14px;fill:#1f2328}'
        ".s{fill:#57606a}.b{font-size:15px;font-weight:600}</style>",
        f'<rect width="980" height="{high}" fill="#ffffff"/>',
        '<text x="30" y="34" class="b">what make test runs</text><text x="760" y="34" class="s">tests</text><text x="850" y="34" class="s">seconds</text>',
    ]
    for i, (name, finds, tests, seconds) in enumerate(reversed(rows)):
        y, inset = top + step * i, 18 * (len(rows) - 1 - i)
        colour = "#dafbe1" if len(rows) - i <= 4 else "#ddf4ff" if len(rows) - i <= 6 else "#fff8c5"
        out.append(
            f'<rect x="{30 + inset}" y="{y - 12}" width="{700 - 2 * inset}" height="{step - 8}" rx="6" fill="{colour}" stroke="#57606a"/>'
            f'<text x="{46 + inset}" y="{y + 10}" class="b">{name}</text><text x="{46 + inset}" y="{y + 30}" class="s">{finds}</text>'
            f'<text x="760" y="{y + 18}">{tests:,}</text><text x="850" y="{y + 18}">{seconds:,.0f}</text>'
        )
    return "\n".join(out + ["</svg>"]) + "\n"


def renew(page, seconds, tests):
    """Writes the tables between the page's marks, and the picture."""
    sums = [[name, finds, 0, 0.0] for name, finds, _ in LAYERS]
    for package, took in seconds.items():
        row = sums[layer_of(package)]
        row[2] += tests[package]
        row[3] += took
    listed = subprocess.run(["go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", "./...", "./scripts/..."], check=True, capture_output=True, text=True)
    docs = dict(line.removeprefix("facet/").split("\t") for line in listed.stdout.splitlines())
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:10]
    text = page.read_text(encoding="utf-8")
    for name, new in (
        ("layers", table(("layer", "what it finds", "tests", "seconds"), [(a, b, f"{c:,}", f"{d:.0f}") for a, b, c, d in sums])),
        ("slowest", table(("seconds", "package", "what it is"), [(f"{took:.0f}", f"`{p}`", brief(docs.get(p, ""))) for p, took in slowest])),
    ):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = before + begin + new + "\n" + end + rest.split(end)[1]
    page.write_text(text, encoding="utf-8")
    (page.parent / "pictures" / PICTURE).write_text(picture(sums), encoding="utf-8")


if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
seconds, tests, skipped = {}, collections.Counter(), []
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line) if line.startswith("{") else {}
    package, test, action = event.get("Package", "").removeprefix("facet/"), event.get("Test"), event.get("Action")
    if action == "skip" and test:
        skipped.append(f"{package} {test}")
    elif action in ("pass", "fail") and test:
        tests[package] += 1
    elif action in ("pass", "fail"):
        seconds[package] = event.get("Elapsed", 0)

print("the ten slowest packages, in seconds:")
for package, took in sorted(seconds.items(), key=lambda item: -item[1])[:10]:
    print(f"{took:7.0f}  {package}")
lines = pathlib.Path(__file__).with_name("skips.txt").read_text(encoding="utf-8").splitlines()
listed = {line.split(":")[0].strip() for line in lines if not line.startswith("#")}
for name in skipped:
    print(f"skipped: {name}" + ("" if name in listed else ", which scripts/skips.txt does not list"))
if len(sys.argv) == 3:
    renew(pathlib.Path(sys.argv[2]), seconds, tests)
if os.environ.get("CI") and not listed.issuperset(skipped):
    sys.exit(1)
