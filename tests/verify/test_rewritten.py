"""Files that BOLT has rewritten: `verify` compares SFrame with the CFI that counts, and says it; `lint` warns."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.verify import verify
from tests.rewriting.bolt import bolted, compiled


@pytest.mark.parametrize("flags", [(), ("-Wl,--emit-relocs",)], ids=["in place", "moved"])
def test_rows_are_compared_with_the_cfi_that_counts(
    flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = compiled(tmp_path, 3, *flags)
    rewritten = bolted(program)
    assert not verify(program).rewriter
    assert not any(one.function.startswith("work") for one in verify(program).disagreements)
    assert main(["verify", str(rewritten)]) == 1
    headline, *lines = capsys.readouterr().out.splitlines()
    assert re.search(r"; the file was rewritten by BOLT after linking \(\.bolt\.org\.\w+, \.[.\w]+\)$", headline)
    assert not any("overlap" in line for line in lines)
    assert verify(rewritten).to_json()["rewritten"] in headline
    if not flags:
        assert any(re.search(r"work\+0x\w+: cfa: SFrame .*; DWARF ", line) for line in lines)


def test_sframe_from_the_new_cfi_covers_all_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BOLT keeps the linker's FDEs, which overlap its own where a function became shorter."""
    rewritten, copy = bolted(compiled(tmp_path)), tmp_path / "copy"
    assert main(["convert", str(rewritten), "-o", str(copy)]) == 0
    printed = capsys.readouterr().out
    assert "SFrame version 3 from DWARF CFI" in printed
    assert "left out" not in printed
    assert main(["verify", str(copy)]) == 0
    assert "rewritten" not in capsys.readouterr().out
    printed = subprocess.run([copy], capture_output=True, text=True, timeout=60, check=True).stdout
    assert printed == subprocess.run([rewritten], capture_output=True, text=True, timeout=60, check=True).stdout


def test_each_consumer_of_programs_is_warned(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    assert not any(shown.finding.rule.name == "code-rewritten" for shown in lint(program).findings)
    (shown,) = (
        shown
        for shown in lint(bolted(program), list(PROFILES.values())).findings
        if shown.finding.rule.name == "code-rewritten"
    )
    assert shown.level == "warning"
    assert [name for name, _ in shown.effects] == [
        name for name in PROFILES if name not in ("linux-kernel", "glibc", "libsframe-2.40", "libsframe-2.44")
    ]  # the others refuse version 3
