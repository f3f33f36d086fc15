import re
from pathlib import Path

import pytest

_README = Path(__file__).parent.parent / "README.md"


def test_what_the_readme_shows_runs(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python of the README, one block after the other; what it prints stands in comments."""
    monkeypatch.chdir(workplace)
    blocks = re.findall(r"```python\n(.*?)```", _README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(_README), "exec"), names)
        want = re.findall(r"#> (.*)", block)
        assert capsys.readouterr().out.splitlines() == want
