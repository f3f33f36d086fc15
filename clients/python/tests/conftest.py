"""Starts a cluster of three processes of the built facet for all tests."""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from facet_client import Client

# hypothesis must not keep its database beside the source.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "facet-hypothesis"))

ROOT = Path(__file__).resolve().parents[3]
PHOTOS = ROOT / "assets" / "photos"
PROGRAM = Path(os.environ.get("FACET", ROOT / "bin" / "facet"))
_START = 90  # seconds
_names = itertools.count()


def _die_with_us() -> None:
    """Makes the kernel end the cluster when the tests die in any way (Linux)."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Returns a folder with dev/dev.json of a running cluster, and assets/photos."""
    for needed in (PROGRAM, PHOTOS):
        if not needed.exists():
            pytest.exit(f'{needed} is missing: run "make setup build" first', 2)
    place = tmp_path_factory.mktemp("facet")
    (place / "assets").symlink_to(PHOTOS.parent)
    with open(place / "dev.log", "wb") as log:
        dev = subprocess.Popen(
            [PROGRAM, "dev", "--dir", "dev", "--nodes", "3", "--shards", "2"],
            cwd=place,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_us if sys.platform == "linux" else None,
        )
    try:
        late = time.monotonic() + _START
        while not (place / "dev" / "dev.json").exists():
            if dev.poll() is not None or time.monotonic() > late:
                pytest.exit("facet dev did not start:\n" + (place / "dev.log").read_text(), 2)
            time.sleep(0.05)
        yield place
    finally:
        dev.send_signal(signal.SIGINT)
        assert dev.wait(_START) == 0, (place / "dev.log").read_text()


@pytest.fixture(scope="session")
def dev(workplace: Path) -> dict[str, Any]:
    """Returns the cluster's dev.json."""
    value: dict[str, Any] = json.loads((workplace / "dev" / "dev.json").read_text())
    return value


@pytest.fixture
def tenant(workplace: Path) -> Iterator[Client]:
    """Returns a client without a gallery."""
    with Client.from_dev(workplace / "dev" / "dev.json") as client:
        yield client


@pytest.fixture
def client(tenant: Client) -> Client:
    """Returns a client with a gallery for ten."""
    gallery = tenant.create_gallery(f"python {next(_names)}", 10)
    return tenant.with_api_key(gallery.api_key)


def photo(name: str) -> bytes:
    return (PHOTOS / name).read_bytes()


OBAMA = "face_recognition/obama.jpg"
ANOTHER_OBAMA = "face_recognition/obama2.jpg"
BIDEN = "face_recognition/biden.jpg"
ROCKET = "scikit-image/rocket.jpg"
THREE_PEOPLE = "face-api/sample1.jpg"
