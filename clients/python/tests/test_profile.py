"""Profiles that facet tenant create --save writes."""

import json
import subprocess
from pathlib import Path

import pytest

from conftest import PROGRAM
from facet_client import Client


def test_saved_profile_is_enough(workplace: Path) -> None:
    subprocess.run(
        [PROGRAM, "tenant", "create", "profiles", "--save", "profiles.json", "--dir", "dev"],
        cwd=workplace, check=True, capture_output=True, text=True,
    )  # fmt: skip
    file = workplace / "profiles.json"
    saved = json.loads(file.read_text())
    assert saved["ca"].startswith("-----BEGIN CERTIFICATE-----")
    with Client.from_profile(file) as client:
        assert client.galleries() == []
    saved["ca_file"] = "ca.pem"
    (workplace / "ca.pem").write_text(saved.pop("ca"))
    file.write_text(json.dumps(saved))
    with Client.from_profile(file, api_key="none") as client:
        assert client.galleries() == []


def test_profile_without_keys_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_text('{"base_urls": ["https://localhost:7420"]}')
    with pytest.raises(ValueError, match="has no access_key"):
        Client.from_profile(file)
