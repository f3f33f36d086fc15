#!/usr/bin/env python3
"""Plays a week of an office that works with facet, on a real cluster of three nodes ("make demo-office").

usage: office.py [--people N] [--dir FOLDER] [--facet FILE] [--photos FOLDER]

It types the commands that a person would type, shows what they say, and compares each number with what was put
in. The first one that differs ends it with exit status 1.

The sample photos show no 2,000 persons. The list has that many rows, and each has a photo of its own, but most show
one of 14 persons: another crop, size, angle, light and JPEG quality, half of them mirrored. So each row is a member
with an id of her own, a search finds many members of one face, and how many it must find is known.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients/python/src"))
from facet_client import Client, external  # noqa: E402

ASKED = 4711  # the external id that Tuesday asks for, in the middle of every list
TIMEOUT = 600  # seconds for the cluster to serve, for half of the import, and for a node to catch up
VISIT = 20  # seconds that the visitor stays
GONE = 5  # seconds after its time that an event may match (docs/interface/subjects.md)
SHOWN = 50  # most photos in the answer of a search
LINES, COLUMNS = 7, 96  # shown of a command's output
MARK = ".demo-office"  # a file in the folders that this program makes

# A face is a sample photo, which the set-up pins by its hash, and the pupils in it: x and y of the one on the left
# of the photo, then of the other.
CROWD = [  # the model tells each from all others
    ("face-api/sample1.jpg", 1557, 282, 1614, 336),
    ("face-api/sample1.jpg", 436, 457, 513, 458),
    ("face-api/sample1.jpg", 873, 555, 941, 518),
    ("face-api/sample2.jpg", 1487, 283, 1564, 258),
    ("face-api/sample3.jpg", 1557, 411, 1653, 403),
    ("face-api/sample4.jpg", 1006, 280, 1076, 291),
    ("face-api/sample5.jpg", 423, 993, 520, 981),
    ("face-api/sample5.jpg", 1435, 512, 1520, 496),
    ("face-api/sample5.jpg", 683, 515, 752, 517),
    ("face-api/sample5.jpg", 1152, 296, 1228, 294),
    ("face-api/sample5.jpg", 849, 195, 919, 206),
    ("face-api/sample6.jpg", 1533, 375, 1628, 396),
    ("face-api/sample6.jpg", 324, 609, 426, 597),
    ("face-api/sample6.jpg", 1228, 430, 1328, 430),
]
DOUBLED = ("face_recognition/obama.jpg", 443, 216, 549, 214)  # enrolled twice by mistake, from two photos
DOUBLED_AGAIN = ("face_recognition/obama2.jpg", 251, 371, 372, 381)
ERASED = ("face_recognition/biden.jpg", 536, 325, 652, 350)
PROBES = {
    "third.jpg": ("face_recognition/obama3.jpg", 738, 387, 860, 400),
    "leaves.jpg": ERASED,
    "visitor.jpg": ("scikit-image/astronaut.png", 204, 101, 247, 103),
    "other.jpg": ("face-api/sample3.jpg", 1116, 321, 1209, 339),  # another photo of CROWD[0]
}
FACELESS, GROUP = "scikit-image/rocket.jpg", "face-api/sample1.jpg"


class Wrong(Exception):
    """A number that differs from what was put in, or a command that ended otherwise than expected."""


def picture(photos, face, number, name):
    """Writes a picture of a face as another camera might have taken it. The number decides all about it."""
    photo, x1, y1, x2, y2 = face
    r = random.Random(number)
    side = round(r.uniform(180, 240))
    scale = side * r.uniform(0.22, 0.27) / math.hypot(x2 - x1, y2 - y1)
    at_x, at_y = side * r.uniform(0.46, 0.54), side * r.uniform(0.38, 0.46)
    angle = r.uniform(-0.1, 0.1) - math.atan2(y2 - y1, x2 - x1)
    if photo not in photos:
        photos[photo] = Image.open(photos["folder"] / photo).convert("RGB")
    # The surroundings of the face first become smaller, which loses no detail, and are then turned.
    reach = math.ceil(side / scale)
    left, top = round((x1 + x2) / 2) - reach, round((y1 + y2) / 2) - reach
    source = photos[photo]
    around = Image.new("RGB", (2 * reach, 2 * reach), (128, 128, 128))
    inside = (max(left, 0), max(top, 0), min(left + 2 * reach, source.width), min(top + 2 * reach, source.height))
    around.paste(source.crop(inside), (inside[0] - left, inside[1] - top))
    around = around.resize((2 * side, 2 * side), Image.Resampling.LANCZOS)
    mirror = 1 - number % 2 * 2
    cos, sin = math.cos(angle), math.sin(angle)
    inverse = (mirror * cos, sin, side - mirror * cos * at_x - sin * at_y, -mirror * sin, cos, side + mirror * sin * at_x - cos * at_y)
    out = around.transform((side, side), Image.Transform.AFFINE, inverse, Image.Resampling.BICUBIC, fillcolor=(128, 128, 128))
    contrast, more = r.uniform(0.85, 1.15), r.uniform(-8, 8)
    out = out.point(lambda v: max(0, min(255, round((v - 128) * contrast + 128 + more))))
    out.save(name, "JPEG", quality=75 + r.randrange(21))


def plan(people):
    """Returns the rows of the list by their external ids: a face each, or why the row can't be used."""
    rows = {str(ASKED - people // 2 + i): CROWD[i % len(CROWD)] for i in range(people)}
    ids = list(rows)
    rows[ids[people // 4]], rows[ids[people * 3 // 4]], rows[ids[people // 3]] = DOUBLED, DOUBLED_AGAIN, ERASED
    rows[ids[people // 5]] = "there is no such file"
    rows[ids[people * 2 // 5]] = "no face"
    rows[ids[people * 4 // 5]] = "the image shows several faces"
    return rows


class Week:
    """The state of the story so far."""

    def __init__(self, people, folder, program, photos):
        self.dir, self.program, self.photos = folder, program, {"folder": photos}
        self.rows = plan(people)
        self.good = [i for i, face in self.rows.items() if not isinstance(face, str)]
        self.subjects = {}  # of external ids, as the import's report says
        self.running = []

    def only(self, face):
        return next(i for i in self.good if self.rows[i] == face)

    # What is printed.

    def head(self, text):
        print(f"\n{text}", flush=True)

    def tell(self, text):
        print(f"   {text}", flush=True)

    def show(self, text):
        lines = [line for line in text.rstrip("\n").split("\n") if line]
        more = len(lines) - LINES if len(lines) > LINES + 1 else 0
        for line in lines[: len(lines) - more]:
            self.tell("  " + (line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"))
        if more:
            self.tell(f"  … {more} more lines")

    def same(self, what, got, want):
        if got != want:
            raise Wrong(f"{what}: {got}, want {want}")
        self.tell(f"✓ {what}: {got}")

    def same_ids(self, what, got, want):
        for i in set(got) ^ set(want):
            raise Wrong(f"{what}: {len(got)}, want {len(want)}; {i} {'should not be there' if i in got else 'is missing'}")
        self.same(what, len(got), len(want))

    # What is typed.

    def begin(self, line):
        """Runs a line as a person types it, in the folder, with facet in PATH. Its settings are not ours."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("FACET_")}
        env["PATH"] = f"{self.program.parent}:{env['PATH']}"
        return subprocess.Popen(["bash", "-c", line], cwd=self.dir, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def quiet(self, line):
        p = self.begin(line)
        return p.communicate()[0], p.returncode

    def run(self, line, want=0, last=False):
        """Runs a line, shows the begin of its output or the last lines, and checks the exit status."""
        self.tell("$ " + line)
        text, status = self.quiet(line)
        self.show("\n".join(text.rstrip("\n").split("\n")[-LINES:]) if last else text)
        if status != want:
            raise Wrong(f'"{line}" ended with exit status {status}, want {want}:\n{text}')
        return text

    def start(self, line, output):
        """Runs a line in the background, which writes to a file."""
        self.tell(f"$ {line} &")
        p = self.begin(f"exec {line} >{output} 2>&1")
        self.running.append(p)
        return p

    def stop(self):
        for p in reversed(self.running):
            p.send_signal(signal.SIGTERM)
        for p in self.running:
            p.wait()
        self.running = []

    def until(self, what, holds):
        end = time.monotonic() + TIMEOUT
        while not holds():
            if time.monotonic() > end:
                raise Wrong(f"{what}: not within {TIMEOUT} s")
            time.sleep(0.02)

    # What is known.

    def count(self, node=0):
        return self.nodes[node].subjects(length=1).total

    def look_up(self, want):
        """Asks for each id of the list, each at another node."""
        known = []
        for n, i in enumerate(self.rows):
            found = self.nodes[n % len(self.nodes)].subjects_with(i).subjects
            if found and found[0].id != self.subjects.get(i):
                raise Wrong(f"{i} is subject {found[0].id}, want {self.subjects.get(i)}")
            known += [i] * bool(found)
        self.same_ids("members found by their ids", known, want)

    def found(self, photo):
        line = f"facet search {photo} --limit {SHOWN} -o json"
        text, status = self.quiet(line)
        if status != 0:
            raise Wrong(f'"{line}" ended with exit status {status}:\n{text}')
        return [c["externalId"] for c in json.loads(text)["candidates"]]

    def search_finds(self, photo, *want):
        self.run("facet search " + photo)
        self.same_ids("members found by " + photo, self.found(photo), want)

    def check_report(self):
        """Compares the report of the import with the list. The subjects of an earlier report stay."""
        with open(self.dir / "members.csv.report.csv", encoding="utf-8", newline="") as file:
            report = list(csv.DictReader(file))
        self.same("lines of the report", len(report), len(self.rows))
        for row, (i, face) in zip(report, self.rows.items(), strict=True):
            outcome = "failed" if isinstance(face, str) else "registered"
            if row["external_id"] != i or row["outcome"] != outcome or isinstance(face, str) and not row["reason"].startswith(face):
                raise Wrong(f"{i} should be {outcome}, and the report has {row}")
            if outcome == "registered" and self.subjects.setdefault(i, row["subject_id"]) != row["subject_id"]:
                raise Wrong(f"{i} is subject {row['subject_id']}, and was {self.subjects[i]}")
        self.same("rows that are in", len(self.subjects), len(self.rows) - 3)

    # The days.

    def before(self):
        self.head(f"An office with a list of {len(self.rows)} people")
        begun = time.monotonic()
        (self.dir / "photos").mkdir()
        for number, (i, face) in enumerate(self.rows.items()):
            name = self.dir / "photos" / f"{i}.jpg"
            if not isinstance(face, str):
                picture(self.photos, face, number, name)
            elif "file" not in face:
                shutil.copyfile(self.photos["folder"] / (FACELESS if face == "no face" else GROUP), name)
        for number, (name, face) in enumerate(PROBES.items()):
            picture(self.photos, face, len(self.rows) + number, self.dir / name)
        with open(self.dir / "members.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["external_id", "file", "tags"], *([i, f"photos/{i}.jpg", "staff"] for i in self.rows)])
        self.tell(f"{time.monotonic() - begun:.0f} s went into their photos. The sample photos do not show so many persons: most rows")
        self.tell(f"have one of {len(CROWD)} faces, each time cropped, turned, lit and compressed otherwise. So each row")
        self.tell("is a member of her own, and how many of them show one face is known.")
        self.tell(f"Everything is in {self.dir}; facet is {self.program}.")

    def open(self):
        cluster, info = self.start("facet dev", "dev.out"), self.dir / "dev/dev.json"

        def serves():
            if cluster.poll() is not None:
                raise Wrong((self.dir / "dev.out").read_text(encoding="utf-8"))
            return info.exists()

        self.until("start the cluster", serves)
        self.show((self.dir / "dev.out").read_text(encoding="utf-8"))
        self.info = json.loads(info.read_text(encoding="utf-8"))
        # Room for all rows, the copies of a merge and the visitor.
        self.run(f"facet gallery create members --size {len(self.rows) + 10}")
        self.run("facet tag create staff")
        api_key = json.loads(self.quiet("facet gallery show members -o json")[0])["applications"][0]["apiKey"]
        self.nodes = []
        for n in self.info["nodes"]:
            keys = {k: self.info[k] for k in ("access_key", "secret_key", "region", "service", "ca_file")}
            self.nodes.append(Client([n["url"]], api_key=api_key, **keys))

    def accident(self, imported):
        """Kills the second node while the import runs, and starts it again."""

        def reach(share):
            def holds():
                if imported.poll() is not None:
                    raise Wrong("the import ended:\n" + (self.dir / "import.out").read_text(encoding="utf-8"))
                return self.count() >= share

            self.until(f"{share} rows are in", holds)

        victim = self.info["nodes"][1]
        reach(len(self.rows) // 5)
        self.run(f"kill -9 {victim['pid']}   # {victim['name']}")
        killed = self.count()
        reach(len(self.rows) // 2)
        self.tell(f"{killed} rows were in when {victim['name']} died; with two nodes the import went on. {victim['name']} comes back:")
        self.start("facet " + " ".join(victim["cmd"][1:]), "again.out")

    def monday(self):
        self.head("Monday: the list comes in, and a node dies")
        self.open()
        self.run("head -n 3 members.csv")
        line = "facet import members.csv --tag staff"
        job = self.start(line, "import.out")
        self.accident(job)
        self.tell("$ wait")
        status = job.wait()
        text = (self.dir / "import.out").read_text(encoding="utf-8")
        self.show("\n".join(text.rstrip("\n").split("\n")[-LINES:]))
        self.same("exit status of an import with bad rows", status, 1)
        self.check_report()
        self.until("the killed node catches up", lambda: self.quiet("facet status")[1] == 0)
        for i, n in enumerate(self.info["nodes"]):
            self.same("members, asked at " + n["name"], self.count(i), len(self.good))
        self.tell("The same command again sends nothing that is in:")
        self.run(line, 1)
        self.check_report()

    def tuesday(self):
        self.head("Tuesday: who is a member?")
        self.run(f"facet subject show externalId:{ASKED}")
        self.run("facet subject show externalId:9999", 1)
        self.tell("Does the photo show her? Does another member's?")
        self.run(f"facet verify photos/{ASKED}.jpg externalId:{ASKED}")
        self.run(f"facet verify photos/{ASKED + 1}.jpg externalId:{ASKED}", 5)
        self.tell("Every id of the list, each asked at another node:")
        self.look_up(self.good)

    def wednesday(self):
        first, second = self.only(DOUBLED), self.only(DOUBLED_AGAIN)
        self.head("Wednesday: a person is in the list twice")
        self.search_finds("third.jpg", first, second)
        self.run(f"facet subject merge externalId:{first} externalId:{second}")
        self.search_finds("third.jpg", first)
        self.same("photos of " + first, len(self.nodes[0].events(external(first))), 2)
        self.run("facet subject show externalId:" + second, 1)

    def thursday(self):
        self.head("Thursday: whom does a photo show that was never enrolled?")
        self.run("facet search visitor.jpg", 5)
        self.run("facet search other.jpg --limit 5")
        want = [i for i in self.good if self.rows[i] == CROWD[0]]
        got = self.found("other.jpg")
        if strangers := set(got) - set(want):
            raise Wrong(f"the search found {strangers.pop()}, who has another face")
        self.same(f"members found with --limit {SHOWN}", len(got), min(SHOWN, len(want)))
        probe = (self.dir / "other.jpg").read_bytes()
        for client, n in zip(self.nodes, self.info["nodes"], strict=True):
            self.same_ids("all matches, POST /v1.1/face/matches at " + n["name"], [m.id for m in client.matches(probe)], [self.subjects[i] for i in want])
        self.tell(f"She is a visitor, until {VISIT} s from now:")
        self.run(f"facet enrol visitor.jpg --external-id visitor-1 --expires {VISIT}s")
        self.expires = time.monotonic() + VISIT
        self.search_finds("visitor.jpg", "visitor-1")

    def friday(self):
        self.head("Friday: a person wants to be forgotten, and the visitor's time is over")
        leaves = self.only(ERASED)
        text = self.run("facet erase --photo leaves.jpg --now --wait=disks --yes --receipt leaves.receipt", last=True)
        if text.count(self.subjects[leaves]) != 2 or "\nCOMPLETE" not in text:
            raise Wrong(f"the receipt is not complete, or not of {self.subjects[leaves]}:\n{text}")
        self.run("facet search leaves.jpg", 5)
        self.run("facet subject show externalId:" + leaves, 1)
        self.run("facet cluster status | grep ^facet- | tee cluster.pub")
        time.sleep(max(0, self.expires - time.monotonic()))
        while True:
            late = time.monotonic() - self.expires
            text, status = self.quiet("facet search visitor.jpg")
            if status == 5:
                break
            if status != 0 or late > GONE:
                raise Wrong(f"the visitor {late:.1f} s after her time: exit status {status}\n{text}")
        self.tell("$ facet search visitor.jpg")
        self.show(text)
        self.tell(f"✓ the visitor is gone, seen {late:.1f} s after her time")

    def weekend(self):
        self.head("The weekend: what is left?")
        self.run("facet subject list --all -o json > members.json; grep -c externalId members.json")
        entries = json.loads((self.dir / "members.json").read_text(encoding="utf-8"))
        want = [i for i in self.good if i not in (self.only(DOUBLED_AGAIN), self.only(ERASED))]
        for e in entries:
            if e["id"] != self.subjects.get(e["externalId"]):
                raise Wrong(f"the export has {e['externalId']} as subject {e['id']}, want {self.subjects.get(e['externalId'])}")
        # Each has one photo, and the one that was merged has two.
        self.same("photos in the export", len(entries), len(want) + 1)
        self.same_ids("members in the export", {e["externalId"] for e in entries}, want)
        self.look_up(want)
        self.stop()
        self.tell("The cluster has stopped. The receipt proves the erasure without it:")
        self.run('facet erase verify leaves.receipt --key "$(cat cluster.pub)"')
        self.run('sed s/members/friends/ leaves.receipt > forged; facet erase verify forged --key "$(cat cluster.pub)"', 1)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--people", type=int, default=2000, help="rows of the list, 100 to 5000 (default 2000)")
    parse.add_argument("--dir", default="office-data", help="folder of the cluster, the list and the photos; an earlier one is removed")
    parse.add_argument("--facet", default="bin/facet", help="the program")
    parse.add_argument("--photos", default="assets/photos", help="folder with the sample photos of make setup")
    args = parse.parse_args()
    folder, program, photos = (pathlib.Path(p).resolve() for p in (args.dir, args.facet, args.photos))
    if not 100 <= args.people <= 5000:
        parse.error("--people is 100 to 5000")
    if not os.access(program, os.X_OK):
        parse.error(f'there is no program {program}: run "make build"')
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            parse.error(f"{folder} is not a folder of an earlier week: name another by --dir, or remove it")
        if (folder / "dev/dev.json").exists() and any(alive(n["pid"]) for n in json.loads((folder / "dev/dev.json").read_bytes())["nodes"]):
            parse.error(f"a cluster runs in {folder}: stop it first")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    week, begun = Week(args.people, folder, program, photos), time.monotonic()
    try:
        for day in (week.before, week.monday, week.tuesday, week.wednesday, week.thursday, week.friday, week.weekend):
            day()
    except (Wrong, KeyboardInterrupt) as e:
        sys.exit(f"office: {e}")
    finally:
        week.stop()
    print(f"\nEvery number is as it was put in. The week took {time.monotonic() - begun:.0f} s.")


main()
