"""Reads the file that ``facet models extract`` writes (docs/formats/lab.md)."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Texts = NDArray[np.str_]
Array = NDArray[Any]

VERSION = 1
BYTES_MAX = 4 << 30  # of all arrays together
PHOTOS_MAX = 100_000
MANIFEST_MAX = 1 << 20
_WIDTH_MAX = 4096  # of a text
_OUTCOMES = ("acquired", "no face", "no image", "several faces")
# The least quality of a probe in the service.
_PROBE_QUALITY_MIN = 0.05

# Each array with its type and its shape: N photographs, P persons, F features, M detections, D values of a
# template, C values of both embedders; B and a number are free and fixed.
_NEEDED = {
    "version": ("i4", ""), "manifest": ("u1", "B"), "features": ("S", "F"), "faces": ("S", "1"),
    "decoder": ("S", "1"), "persons": ("S", "P"), "person": ("i4", "N"), "file": ("S", "N"),
    "outcome": ("S", "N"), "chosen": ("b1", "N"), "aside": ("b1", "N"), "quality": ("f4", "N"),
    "defects": ("S", "N"), "feature": ("f8", "NF"), "template": ("f4", "ND"),
}  # fmt: skip
_OF_FIT = {
    "fit_outcome": ("S", "N"), "fit_template": ("f4", "ND"), "seen_photo": ("i4", "M"), "seen_kind": ("S", "M"),
    "seen_template": ("f4", "MD"), "seen_looks": ("f8", "M2"), "seen_upright": ("f8", "M4"),
    "seen_feature": ("f8", "MF"),
}  # fmt: skip
_OF_BOTH = {"both": ("f4", "NC"), "fit_both": ("f4", "NC"), "seen_both": ("f4", "MC")}


class LabError(Exception):
    """A sentence for the person at the command line."""


@dataclass(frozen=True)
class Photos:
    """Photographs in the order of persons: what the rates and fits start from."""

    person: Ints
    acquired: Flags
    quality: Floats
    template: Singles  # unit length; zeros where no face was acquired
    both: Singles | None  # the values of both embedders, if there are two

    def part(self, where: Flags | Ints) -> Photos:
        both = None if self.both is None else self.both[where]
        return Photos(self.person[where], self.acquired[where], self.quality[where], self.template[where], both)

    def projected(self, rows: Singles) -> Photos:
        """Returns the photographs with the templates that a projection makes of both embedders' values."""
        assert self.both is not None
        return replace(self, template=projected(self.both, rows))


def projected(both: Singles, rows: Singles) -> Singles:
    product = both.astype(np.float64) @ rows.T.astype(np.float64)
    length = np.linalg.norm(product, axis=1, keepdims=True)
    return np.asarray(product / np.where(length > 0, length, 1), np.float32)


@dataclass(frozen=True)
class Seen:
    """Detections on photographs and spoilt copies, for the fits of evidence, least norm and quality."""

    photo: Ints  # -1 for detections that are no upright face
    kind: Texts
    template: Singles
    both: Singles | None
    looks: Floats
    upright: Floats  # doubt, eyes, eyes below, odds
    feature: Floats


@dataclass(frozen=True)
class Lab:
    """The content of the file."""

    manifest: dict[str, Any]
    identity: str
    faces: str
    decoder: str
    persons: list[str]
    features: list[str]
    file: Texts
    outcome: Texts
    chosen: Flags
    aside: Flags
    defects: Texts
    feature: Floats
    photos: Photos
    fit: Photos | None
    seen: Seen | None

    def of_quality(self, least: float) -> tuple[Photos, int]:
        """Returns the photographs, and how many faces do not count because they are too poor.

        By a rule of the service the least quality is that of each person's first photograph, which also has no
        defect; the others are probes.
        """
        p = self.photos
        poor = p.quality < least
        if self.faces != "middle":
            first = np.diff(p.person, prepend=-1) > 0
            poor = np.where(first, poor | (self.defects != ""), p.quality < _PROBE_QUALITY_MIN)
        return replace(p, acquired=p.acquired & ~poor), int((p.acquired & poor).sum())


def load(path: str | Path) -> Lab:
    """Reads the file; errors are LabErrors."""
    name = Path(path).name
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _arrays(archive)
        return _lab(arrays)
    except FileNotFoundError as e:
        raise LabError(f"there is no file {path}") from e
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as e:
        raise LabError(f"{name} is cut off or not a file of facet models extract ({e})") from e
    except (LabError, ValueError, KeyError) as e:
        text = f"there is no array {e}" if isinstance(e, KeyError) else str(e)
        raise LabError(f"{name} is not a file of facet models extract that can be used: {text}") from e


def _arrays(archive: zipfile.ZipFile) -> dict[str, Array]:
    known = {**_NEEDED, **_OF_FIT, **_OF_BOTH}
    infos = [i for i in archive.infolist() if i.filename.removesuffix(".npy") in known]
    if len(infos) != len({i.filename for i in infos}):
        raise LabError("an array is there twice")
    if (size := sum(i.file_size for i in infos)) > BYTES_MAX:
        raise LabError(f"its arrays have {size >> 20} MiB, more than {BYTES_MAX >> 20}")
    return {i.filename.removesuffix(".npy"): _array(archive, i, known) for i in infos}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, known: dict[str, tuple[str, str]]) -> Array:
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as f:
        if np.lib.format.read_magic(f) != (1, 0):
            raise LabError(f"{name} has another version of the npy format than 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(f)
        kind, sides = known[name]
        right = dtype.kind == "S" and dtype.itemsize <= _WIDTH_MAX if kind == "S" else dtype == np.dtype("<" + kind)
        if fortran or not right or len(shape) != len(sides) or (size := prod(shape) * dtype.itemsize) > BYTES_MAX:
            raise LabError(f"{name} has the type {dtype} and the shape {shape}")
        if size != info.file_size - f.tell():
            raise LabError(f"{name} has not the bytes of its shape {shape}")
        array = np.frombuffer(f.read(size), dtype).reshape(shape)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise LabError(f"{name} has a number that is not finite")
    return np.char.decode(array, "utf-8") if kind == "S" else array


def _check_shapes(arrays: dict[str, Array]) -> None:
    fits = any(a in arrays for a in _OF_FIT)
    needed = {**_NEEDED, **(_OF_FIT if fits else {})}
    sides: dict[str, int] = {}
    for name, (_, letters) in {**_NEEDED, **_OF_FIT, **_OF_BOTH}.items():
        if name not in arrays:
            if name in needed:
                raise KeyError(name)
            continue
        for letter, side in zip(letters, arrays[name].shape, strict=True):
            if sides.setdefault(letter, int(letter) if letter.isdigit() else side) != side:
                raise LabError(f"{name} has the shape {arrays[name].shape}, which does not fit the other arrays")
    if not 0 < sides["N"] <= PHOTOS_MAX or sides["B"] > MANIFEST_MAX:
        raise LabError(f"it has {sides['N']} photographs and a manifest of {sides['B']} bytes")


def _lab(arrays: dict[str, Array]) -> Lab:
    if "version" in arrays and arrays["version"] != VERSION:
        raise LabError(f"its version is {arrays['version']}, this program reads {VERSION}")
    _check_shapes(arrays)
    text = arrays["manifest"].tobytes()
    manifest = json.loads(text)
    if not isinstance(manifest, dict):
        raise LabError("its manifest is not a JSON object")
    person = arrays["person"].astype(np.int64)
    if person[0] < 0 or person[-1] >= len(arrays["persons"]) or (np.diff(person) < 0).any():
        raise LabError("the photographs are not in the order of persons")
    fit = seen = None
    if "fit_outcome" in arrays:
        fit = _photos(arrays, "fit_", person)
        if not ((arrays["seen_photo"] >= -1) & (arrays["seen_photo"] < len(person))).all():
            raise LabError("a detection is of a photograph that is not there")
        seen = Seen(
            arrays["seen_photo"].astype(np.int64), arrays["seen_kind"], arrays["seen_template"],
            arrays.get("seen_both"), arrays["seen_looks"], arrays["seen_upright"], arrays["seen_feature"],
        )  # fmt: skip
    return Lab(
        manifest, hashlib.sha256(text).hexdigest(), str(arrays["faces"][0]), str(arrays["decoder"][0]),
        [str(p) for p in arrays["persons"]], [str(f) for f in arrays["features"]], arrays["file"], arrays["outcome"],
        arrays["chosen"], arrays["aside"], arrays["defects"], arrays["feature"], _photos(arrays, "", person), fit, seen,
    )  # fmt: skip


def _photos(arrays: dict[str, Array], prefix: str, person: Ints) -> Photos:
    outcome, template, both = arrays[prefix + "outcome"], arrays[prefix + "template"], arrays.get(prefix + "both")
    if not np.isin(outcome, _OUTCOMES).all():
        raise LabError(f"an outcome is not one of {', '.join(_OUTCOMES)}")
    acquired = outcome == "acquired"
    for values in (template, both):
        if values is None or values.shape[1] == 0:
            continue
        length = np.linalg.norm(values[acquired], axis=1)
        if (np.abs(length - 1) > 1e-3).any():
            raise LabError(f"{prefix}template or {prefix}both has a row that is not of unit length")
    quality = arrays["quality"].astype(np.float64) if prefix == "" else np.zeros(len(person))
    return Photos(person, acquired, quality, template, both)
