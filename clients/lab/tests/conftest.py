from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FEATURES = [
    "norm", "score", "sharpness", "directionalSharpness", "contrast", "brightness", "eyeDistance", "frontal",
    "isotropy", "fineness", "smear", "unevenness", "clipped", "doubt",
]  # fmt: skip
POINTS: list[dict[str, Any]] = [
    {"cosine": -1, "score": 0},
    {"cosine": 0.2, "score": 4000},
    {"cosine": 0.5, "score": 7000},
    {"cosine": 0.999, "score": 9999},
    {"cosine": 1, "score": 9999},
]
MANIFEST: dict[str, Any] = {
    "name": "drawn",
    "version": "1",
    "files": [
        {"role": "embedder", "name": "e.onnx", "sha256": "00"},
        {"role": "projection", "name": "drawn.projection", "sha256": "11"},
    ],
    "detector": {"minScore": 0.7, "minNorm": 1},
    "embedder": {"dim": 24},
    "quality": {"bias": 0, "weights": {"norm": 1}, "data": "before"},
    "calibration": {"fmr7000": 1e-5, "data": "before", "points": POINTS},
}

Arrays = dict[str, Any]


def unit(v: Any) -> Any:
    return (v / np.linalg.norm(v, axis=-1, keepdims=True)).astype(np.float32)


def drawn(persons: int = 120, each: int = 3, dim: int = 24, likeness: float = 4.0) -> Arrays:
    """Returns the arrays of a file with faces in random directions; those of a person are near each other."""
    r = np.random.default_rng(7)
    n = persons * each
    person = np.repeat(np.arange(persons, dtype=np.int32), each)
    template = unit(likeness * unit(r.normal(size=(persons, dim)))[person] + unit(r.normal(size=(n, dim))))
    text = json.dumps(MANIFEST, indent=2).encode()
    return {
        "version": np.int32(1),
        "manifest": np.frombuffer(text, np.uint8),
        "features": np.array(FEATURES, "S"),
        "faces": np.array(["middle"], "S"),
        "decoder": np.array(["drawn"], "S"),
        "persons": np.array([f"p{i:03}" for i in range(persons)], "S"),
        "person": person,
        "file": np.array([f"{i}.jpg" for i in range(n)], "S"),
        "outcome": np.full(n, "acquired", "S13"),
        "chosen": np.zeros(n, bool),
        "aside": np.zeros(n, bool),
        "quality": r.random(n).astype(np.float32),
        "defects": np.array(["FaceMoved" if i == 1 else "" for i in range(n)], "S"),
        "feature": r.random((n, len(FEATURES))),
        "template": template,
    }


def with_fit(arrays: Arrays) -> Arrays:
    """Adds the detections of a calibration: a face of large norm reaches score 7000, one of small norm does not."""
    r = np.random.default_rng(8)
    out = copy.copy(arrays)
    out["fit_outcome"], out["fit_template"] = arrays["outcome"], arrays["template"]
    n, (photos, dim) = 100, arrays["template"].shape
    photo = np.arange(0, photos, photos // n, dtype=np.int32)[:n]
    kinds = ["as photographed"] * n + ["moved"] * n + ["turned"] * n + ["shuffled"] * n
    norm = np.concatenate([r.normal(12, 1, n), r.normal(7, 2.5, n), r.normal(6, 1, n), r.normal(5, 1.5, n)])
    template = unit(r.normal(size=(4 * n, dim)))
    p = 1 / (1 + np.exp(-(norm[: 2 * n] - 7) * 1.2))
    good = r.random(2 * n) < p
    template[: 2 * n][good] = arrays["template"][np.tile(photo, 2)][good]
    doubt = np.abs(np.concatenate([r.normal(0.05, 0.02, 2 * n), r.normal(0.28, 0.06, n), r.normal(0.3, 0.1, n)]))
    odds = np.concatenate([r.normal(7.2, 0.3, 2 * n), r.normal(5, 1.5, n), r.normal(1.5, 1, n)])
    eyes = np.concatenate([r.normal(0.32, 0.02, 2 * n), r.normal(0.24, 0.03, n), r.normal(0.27, 0.05, n)])
    below = np.concatenate([r.normal(-0.1, 0.02, 2 * n), r.normal(-0.2, 0.04, n), r.normal(-0.15, 0.06, n)])
    feature = r.random((4 * n, len(FEATURES)))
    feature[:, 0], feature[:, -1] = norm, doubt
    out |= {
        "seen_photo": np.concatenate([photo, photo, np.full(2 * n, -1, np.int32)]),
        "seen_kind": np.array(kinds, "S"),
        "seen_template": template,
        "seen_looks": np.column_stack([odds, odds]),
        "seen_upright": np.column_stack([doubt, eyes, below, odds]),
        "seen_feature": feature,
    }
    return out


def write(file: Path, arrays: Arrays) -> None:
    """Writes the file; numpy.savez takes no array of the name file."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as f:
                np.lib.format.write_array(f, np.asarray(array), version=(1, 0))


Saved = Callable[[Arrays], Path]


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    def save(arrays: Arrays) -> Path:
        file = tmp_path / "lab.npz"
        write(file, arrays)
        return file

    return save


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the tests short; an interval of 40 resamples is a rougher one."""
    monkeypatch.setattr("facet_lab._rate.RESAMPLES", 40)
