"""Writes fits into a manifest (docs/formats/pack.md). Every other byte of it stays."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ._file import MANIFEST_MAX, LabError, Singles

_SPACE = re.compile(r"[ \t\r\n]*")
_PER_LINE = 16  # numbers of a spectrum


def number(v: float) -> str:
    """Returns a number as facet's manifests have it: the shortest text, without exponent from 1e-6 to 1e21."""
    if v == int(v) and abs(v) < 1e15:
        return str(int(v))
    if 1e-6 <= abs(v) < 1e21:
        return np.format_float_positional(v, trim="-")
    return re.sub(r"e([+-])0*(?=\d)", r"e\1", repr(float(v)))


def text_of(value: Any, indent: str = "  ") -> str:
    """Returns the JSON of a section: a field a line, and each calibration point on one line."""
    if isinstance(value, dict) and set(value) == {"cosine", "score"}:
        return f'{{"cosine":{number(value["cosine"])},"score":{number(value["score"])}}}'
    if isinstance(value, dict | list) and value:
        inner = indent + "  "
        items = value.items() if isinstance(value, dict) else [(None, v) for v in value]
        rows = [(f"{json.dumps(k)}: " if k is not None else "") + text_of(v, inner) for k, v in items]
        left, right = "{}" if isinstance(value, dict) else "[]"
        return left + "\n" + inner + (",\n" + inner).join(rows) + "\n" + indent + right
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def find(text: str, *path: str, start: int = 0) -> tuple[int, int] | None:
    """Returns where the value of a field begins and ends in text, a JSON object; the path leads through objects."""
    decoder = json.JSONDecoder()
    at = _skip(text, _skip(text, start) + 1)
    while text[at] == '"':
        name, at = decoder.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # the colon
        _, end = decoder.raw_decode(text, at)
        if name == path[0]:
            return find(text, *path[1:], start=at) if len(path) > 1 else (at, end)
        at = _skip(text, end)
        if text[at] != ",":
            break
        at = _skip(text, at + 1)
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def put(text: str, value: str, *path: str, indent: str = "  ") -> str:
    """Replaces the value of a field, or adds it as the last one of its object."""
    if at := find(text, *path):
        return text[: at[0]] + value + text[at[1] :]
    section = find(text, *path[:-1]) if len(path) > 1 else (0, len(text))
    if section is None:
        raise LabError(f"the manifest has no section {path[0]!r}")
    close = text.rindex("}", *section)
    head = text[:close].rstrip()
    return f'{head},\n{indent}"{path[-1]}": {value}{text[len(head) :]}'


def put_spectrum(text: str, shares: list[float]) -> str:
    rows = [", ".join(number(v) for v in shares[i : i + _PER_LINE]) for i in range(0, len(shares), _PER_LINE)]
    section = "joined" if find(text, "joined") else "embedder"
    return put(text, "[\n      " + ",\n      ".join(rows) + "\n    ]", section, "spectrum", indent="    ")


def refit(text: str, fit: dict[str, Any]) -> str:
    """Returns the manifest with the parts of the fit: quality, calibration, spectrum, minNorm and evidence."""
    for part in ("quality", "calibration"):
        if part in fit:
            text = put(text, text_of(fit[part]), part)
    if "spectrum" in fit:
        text = put_spectrum(text, fit["spectrum"])
    if "minNorm" in fit:
        text = put(text, number(fit["minNorm"]), "detector", "minNorm", indent="    ")
    return put(text, text_of(fit["evidence"]), "evidence") if "evidence" in fit else text


def projection_file(rows: Singles) -> bytes:
    return b"facetprj" + struct.pack("<III", 1, *rows.shape) + rows.astype("<f4").tobytes()


def write(path: Path, fit: dict[str, Any], projection: Singles | None) -> list[str]:
    """Writes the fit into the manifest at path, and the projection beside it; returns the files' names."""
    try:
        if path.stat().st_size > MANIFEST_MAX:
            raise LabError(f"{path.name} is too large for a manifest")
        text = path.read_bytes().decode("utf-8")
        manifest = json.loads(text)
        files, names = [], []
        if projection is not None:
            file = projection_file(projection)
            place = [f["role"] for f in manifest["files"]].index("projection")
            name = manifest["files"][place]["name"]
            if Path(name).name != name or name.startswith("."):
                raise LabError(f"{path.name} names the projection {name!r}, which is not the name of a file")
            text = _put_hash(text, place, hashlib.sha256(file).hexdigest())
            files.append((path.with_name(name), file))
        files.append((path, refit(text, fit).encode("utf-8")))
        json.loads(files[-1][1])
        for to, data in files:
            new = to.with_name(to.name + ".new")
            new.write_bytes(data)
            os.replace(new, to)
            names.append(to.name)
    except (KeyError, TypeError, IndexError, ValueError) as e:
        raise LabError(f"{path.name} is not a manifest that can be written: {e}") from e
    except OSError as e:
        raise LabError(f"{path.name} can't be written: {e.strerror}") from e
    return names


def _put_hash(text: str, place: int, digest: str) -> str:
    """Replaces the SHA-256 of the file at a place in the list of files."""
    found = find(text, "files")
    assert found is not None
    at, decoder = _skip(text, found[0] + 1), json.JSONDecoder()
    for _ in range(place):
        at = _skip(text, _skip(text, decoder.raw_decode(text, at)[1]) + 1)
    value = find(text, "sha256", start=at)
    if value is None:
        raise LabError("the manifest's projection has no sha256")
    return f'{text[: value[0]]}"{digest}"{text[value[1] :]}'
