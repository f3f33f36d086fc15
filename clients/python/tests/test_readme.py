import re
from pathlib import Path

import pytest

_README = Path(__file__).parent.parent / "README.md"


def test_readme_examples_run(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the Python of the README block by block. Comments contain what it prints."""
    monkeypatch.chdir(workplace)
    blocks = re.findall(r"```python\n(.*?)```", _README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(_README), "exec"), names)
        want = re.findall(r"#> (.*)", block)
        assert capsys.readouterr().out.splitlines() == want
