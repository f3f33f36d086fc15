#!/usr/bin/env python3
"""Prints the ten slowest packages of a test run and the tests that it skipped.

usage: scripts/testreport.py FILE.json

FILE.json is the output of "go test -json". With CI in the environment it ends with 1 if a test
was skipped that scripts/skips.txt does not list.
"""

import json
import os
import pathlib
import sys

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
seconds, skipped = {}, []
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line) if line.startswith("{") else {}
    package, test = event.get("Package", "").removeprefix("facet/"), event.get("Test")
    if event.get("Action") == "skip" and test:
        skipped.append(f"{package} {test}")
    elif event.get("Action") in ("pass", "fail") and not test:
        seconds[package] = event.get("Elapsed", 0)

print("the ten slowest packages, in seconds:")
for package, took in sorted(seconds.items(), key=lambda item: -item[1])[:10]:
    print(f"{took:7.0f}  {package}")
lines = pathlib.Path(__file__).with_name("skips.txt").read_text(encoding="utf-8").splitlines()
listed = {line.split(":")[0].strip() for line in lines if not line.startswith("#")}
for name in skipped:
    print(f"skipped: {name}" + ("" if name in listed else ", which scripts/skips.txt does not list"))
if os.environ.get("CI") and not listed.issuperset(skipped):
    sys.exit(1)
