"""What the reader refuses, each with one line."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Arrays, Saved, drawn, with_fit

from facet_lab import LabError, load
from facet_lab._cli import main


def test_file_is_read_back(saved: Saved) -> None:
    arrays = with_fit(drawn())
    lab = load(saved(arrays))
    assert (lab.photos.template == arrays["template"]).all() and lab.persons[3] == "p003"
    assert lab.seen is not None and lab.seen.kind[100] == "moved" and lab.manifest["name"] == "drawn"


def changed(name: str, value: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed("version", np.int32(2)), "its version is 2"),
        (lambda a: a.pop("quality"), "there is no array 'quality'"),
        (lambda a: a.pop("seen_looks"), "there is no array 'seen_looks'"),
        (changed("quality", np.ones(9, np.float32)), "quality has the shape (9,)"),
        (changed("quality", np.full(360, np.nan, np.float32)), "not finite"),
        (changed("template", np.ones((360, 24), np.float32)), "not of unit length"),
        (changed("template", np.ones((360, 24))), "template has the type float64"),
        (changed("outcome", np.full(360, "lost", "S")), "an outcome is not one of"),
        (changed("person", np.arange(360, dtype=np.int32)[::-1]), "not in the order of persons"),
        (changed("seen_photo", np.full(400, 360, np.int32)), "a photograph that is not there"),
        (changed("manifest", np.frombuffer(b"{", np.uint8)), "Expecting"),
        (changed("persons", np.array([b"\xff"] * 120)), "utf-8"),
    ],
)
def test_unusable_files_are_refused(saved: Saved, change: Callable[[Arrays], None], says: str) -> None:
    arrays = with_fit(drawn())
    change(arrays)
    with pytest.raises(LabError, match=r"^lab.npz is not a file of facet models extract that can be used: ") as e:
        load(saved(arrays))
    assert says in str(e.value) and "\n" not in str(e.value)


def test_truncated_files_are_refused(saved: Saved) -> None:
    file = saved(drawn())
    data = file.read_bytes()
    for n in range(0, len(data), len(data) // 19):
        file.write_bytes(data[:n])
        with pytest.raises(LabError, match=r"^lab.npz is cut off"):
            load(file)


def test_damaged_bytes_are_refused(saved: Saved) -> None:
    file = saved(drawn())
    data = bytearray(file.read_bytes())
    at = data.index(b"template.npy") + 2000
    data[at] ^= 1
    file.write_bytes(data)
    with pytest.raises(LabError, match="CRC"):
        load(file)


def test_sizes_are_bounded_before_memory_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "lab.npz"
    head = b"\x93NUMPY\x01\x00\x76\x00"
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 24), }"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("template.npy", head + text.ljust(117) + b"\n")
    with pytest.raises(LabError, match="template has the type float32 and the shape"):
        load(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("template.npy", head + text.replace(b"4000000000", b"1000").ljust(117) + b"\n" + b"0" * 9)
    with pytest.raises(LabError, match="has not the bytes of its shape"):
        load(file)


def test_service_rule_takes_better_photos_to_enrol(saved: Saved) -> None:
    arrays = drawn(2, 3)
    arrays["quality"] = np.array([0.9, 0.04, 0.2, 0.2, 0.2, 0.9], np.float32)
    arrays["faces"] = np.array(["refuse"], "S")
    arrays["defects"] = np.array(["", "", "FaceMoved", "", "", ""], "S9")
    photos, poor = load(saved(arrays)).of_quality(0.45)
    assert photos.acquired.tolist() == [True, False, True, False, True, True] and poor == 2
    arrays["faces"] = np.array(["middle"], "S")
    photos, poor = load(saved(arrays)).of_quality(0.45)
    assert photos.acquired.tolist() == [True, False, False, False, False, True] and poor == 4


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        (drawn(1, 4), "faces of fewer than two persons"),
        (drawn(3, 1) | {"outcome": np.full(3, "no face", "S13")}, "faces of fewer than two persons"),
        (drawn(3, 1) | {"template": np.zeros((3, 0), np.float32)}, "projection is not fitted yet"),
    ],
)
def test_too_little_is_one_line(saved: Saved, capsys: pytest.CaptureFixture[str], arrays: Arrays, says: str) -> None:
    assert main(["accuracy", str(saved(arrays))]) == 1
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1 and err.startswith("facet-lab: ")


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        (drawn(), "without --only-rates"),
        (with_fit(drawn(99, 4)), "99 persons are too few"),
        (with_fit(drawn()), "too few non-mated comparisons"),
    ],
)
def test_calibrate_needs_enough(saved: Saved, capsys: pytest.CaptureFixture[str], arrays: Arrays, says: str) -> None:
    assert main(["calibrate", str(saved(arrays))]) == 1
    assert says in capsys.readouterr().err
