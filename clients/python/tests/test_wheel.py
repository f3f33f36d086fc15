"""The wheel that other projects install."""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from conftest import ROOT

CONSUMER = """
import sys, facet_client
assert facet_client.__file__.startswith(sys.prefix), facet_client.__file__
client = facet_client.Client.from_dev(sys.argv[1])
print("key", bool(client.create_gallery("wheel", size=10).api_key))
client.close()
"""


def test_wheel_makes_a_request(workplace: Path, dev: dict[str, Any], tmp_path: Path) -> None:
    def run(*command: object) -> str:
        done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("go", "run", "./scripts/clients", "-npm=", "-python", sys.executable, "-to", tmp_path / "dist")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    # Offline: what the client depends on comes from the environment of the tests.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(python, "-m", "pip", "install", "--no-index", "--find-links", tmp_path / "dist", "facet-client")
    assert run(python, "-I", "-c", CONSUMER, workplace / "dev" / "dev.json") == "key True\n"
