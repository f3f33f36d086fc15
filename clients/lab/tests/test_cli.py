"""The commands from file to table, and the manifest that calibrate writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import MANIFEST, Saved, drawn, with_fit

from facet_lab._cli import main
from facet_lab._manifest import find, number, projection_file, put, refit, text_of, write


def test_commands_print_tables(saved: Saved, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = str(saved(drawn())), tmp_path / "a.json"
    groups = tmp_path / "g.csv"
    groups.write_text("\ufeffperson,age\n" + "".join(f"p{i:03},{'old' if i % 2 else 'young'}\n" for i in range(120)))
    for line, says in (
        (["accuracy", file, "--json", str(out), "--plot", str(tmp_path / "a.svg")], "360 mated, 64,260 non-mated"),
        (["accuracy", file, "--report", str(tmp_path / "page" / "a.md")], "360 mated, 64,260 non-mated"),
        (["identify", file, "--photos", "2", "--searches", "100"], "Identification, with subjectTemplates"),
        (["groups", file, str(groups)], "How far the groups by age differ"),
        (["quality", file, "--plot", str(tmp_path / "q.png")], "FaceMoved  1"),
        (["plot", str(out), str(out), "--out", str(tmp_path / "p.svg")], "360 photographs of 120 persons"),
    ):
        assert main(line) == 0
        assert says in capsys.readouterr().out
    assert json.loads(out.read_text())["allPairs"]["atThresholds"][3]["fmr"]["trials"] == 64_260
    page = (tmp_path / "page" / "a.md").read_text()
    assert "| 10,000,000 † |" in page and "## The list" not in page and (tmp_path / "page/pictures/det.svg").exists()
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1 and (tmp_path / "q.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,age\n", "header must be person"),
        ("person,age\np000\n", "line 2: it has 1 cells"),
        ("person,age\nnobody,old\n", "line 2: there is no folder of the person 'nobody'"),
        ("person,age\np000,old\np000,old\n", "line 3: the person 'p000' is there twice"),
        ("person,age\n" + "".join(f"p{i:03},{i}\n" for i in range(65)), "line 66: age has more than 64 groups"),
    ],
)
def test_bad_groups_name_the_line(
    saved: Saved, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    groups = tmp_path / "g.csv"
    groups.write_text(text)
    assert main(["groups", str(saved(drawn())), str(groups)]) == 1
    assert says in capsys.readouterr().err


def test_calibrate_keeps_the_manifests_rest(saved: Saved, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "manifest.json"
    before = json.dumps(MANIFEST, indent=2) + "\n"
    manifest.write_text(before)
    file = str(saved(with_fit(drawn(300, 3, likeness=3))))
    assert main(["calibrate", file, "--dataset", "drawn faces", "--write", str(manifest)]) == 0
    out = capsys.readouterr().out
    assert "fitted on 300 persons" in out and "least norm" in out and "quality up to" in out
    after = manifest.read_text()
    got = json.loads(after)
    assert after[: after.index('"minNorm"')] == before[: before.index('"minNorm"')]
    assert got["calibration"]["data"].startswith("drawn faces: 900 of 900") and len(got["embedder"]["spectrum"]) == 24
    assert sum(got["embedder"]["spectrum"]) == pytest.approx(1, abs=1e-3)
    assert got["detector"]["minNorm"] == got["evidence"]["normUnit"] > 0 and len(got["quality"]["weights"]) == 12
    assert {s["photos"] for s in got["calibration"]["subjects"]} <= {2, 3, 4}
    assert '      {"cosine":-1,"score":0},\n' in after
    for part in ("calibration", "quality", "evidence", "detector", "embedder"):
        got.pop(part)
    assert got == {k: v for k, v in MANIFEST.items() if k in got}


def test_projection_goes_beside_the_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(MANIFEST, indent=2))
    rows = np.eye(16, 20, dtype=np.float32)
    assert write(manifest, {}, rows) == ["drawn.projection", "manifest.json"]
    file = (tmp_path / "drawn.projection").read_bytes()
    assert file == projection_file(rows) and file[:20] == b"facetprj\x01\0\0\0\x10\0\0\0\x14\0\0\0"
    assert len(file) == 20 + 4 * 16 * 20
    got = json.loads(manifest.read_text())["files"]
    assert got[0]["sha256"] == "00" and len(got[1]["sha256"]) == 64


def test_numbers_have_the_form_of_manifests() -> None:
    numbers = (0, 1, -1, 0.5, 1e-5, 1.5e-6, 1e-7, 123456.75)
    assert [number(v) for v in numbers] == ["0", "1", "-1", "0.5", "0.00001", "0.0000015", "1e-7", "123456.75"]
    assert text_of({"a": [], "b": {"c": "é"}}, "") == '{\n  "a": [],\n  "b": {\n    "c": "é"\n  }\n}'


def test_fields_are_found_among_others() -> None:
    text = '{ "b" : {"a": [1, {"x": 2}], "x" : 3 } , "x":"}" }'
    found = find(text, "b", "x")
    assert found is not None and text[slice(*found)] == "3" and find(text, "y") is None
    assert put(text, "4", "b", "x") == text.replace("3", "4")
    assert refit('{\n  "detector": {\n    "minNorm": 1\n  }\n}\n', {"minNorm": 6.22, "evidence": {"data": "d"}}) == (
        '{\n  "detector": {\n    "minNorm": 6.22\n  },\n  "evidence": {\n    "data": "d"\n  }\n}\n'
    )
