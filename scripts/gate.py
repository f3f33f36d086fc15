#!/usr/bin/env python3
"""Runs the steps of a release's gate, and remembers which have passed.

usage: scripts/gate.py STEP...        runs "make STEP" for each, and adds a row for each to
                                      docs/benchmarks/test-all.csv: date, commit, step, seconds, result
       scripts/gate.py check STEP...  ends with 1 unless each has passed in the last 14 days
"""

import csv
import datetime
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs/benchmarks/test-all.csv"
DAYS_MAX = 14
TODAY = datetime.datetime.now(datetime.timezone.utc).date()


def run(step):
    described = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(described, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    began = time.monotonic()
    passed = subprocess.run(["make", step], cwd=ROOT, check=False).returncode == 0
    row = [TODAY.isoformat(), commit, step, round(time.monotonic() - began), "passed" if passed else "failed"]
    with ROWS.open("a", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerow(row)
    print("gate:", *row)
    return passed


def check(step):
    with ROWS.open(encoding="utf-8", newline="") as rows:
        mine = [row for row in csv.DictReader(rows) if row["step"] == step]
    if not mine:
        why = "has not run yet"
    elif mine[-1]["result"] != "passed":
        why = f"failed on {mine[-1]['date']}"
    elif (TODAY - datetime.date.fromisoformat(mine[-1]["date"])).days > DAYS_MAX:
        why = f"passed on {mine[-1]['date']}, more than {DAYS_MAX} days ago"
    else:
        return True
    print(f'gate: "make {step}" {why}. Run scripts/gate.py {step} and commit its row.')
    return False


arguments = sys.argv[1:]
do = run
if arguments[:1] == ["check"]:
    do = check
    del arguments[0]
if not arguments or arguments[0].startswith("-"):
    sys.exit(__doc__)
sys.exit(not all([do(step) for step in arguments]))
