"""The sizes of packages: a sample by digest is measured once, and the results are kept."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path

import pytest

from lab.cfi.libraries import FOLDERS
from lab.convert.package_sizes import chosen, main, read
from lab.convert.sizes import measure
from sframe_unwind.translation.compact import MAX_ROWS
from tests.missing import absent


def test_sizes_are_measured_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = FOLDERS["amd64"] / "libnsl.so.1"
    if not library.exists():
        absent(f"{library} is not installed: the sizes of packages stay unchecked")
    folder, kept = tmp_path / "package", tmp_path / "kept"
    folder.mkdir()
    shutil.copy(library, folder)
    shutil.copy(library, folder / "same")
    (folder / "text").write_text("not an ELF file")
    monkeypatch.setattr(sys, "argv", ["package_sizes", "--kept", str(kept), str(folder)])
    assert main() == 0
    sizes = measure(library, MAX_ROWS, ()).sizes
    line = f"amd64, all together (1) | {sizes.plain:,} | {sizes.shared / sizes.plain:.2f} "
    assert line in capsys.readouterr().out
    (only,) = read(kept).values()
    assert only.sizes is not None
    assert only.sizes.columns == sizes.columns
    changed = json.loads(kept.read_text())
    changed[3][1] = 123_456  # as if it had been measured so
    kept.write_text(json.dumps(changed) + "\n")
    assert main() == 0
    assert "amd64, all together (1) | 123,456 |" in capsys.readouterr().out
    just_below = math.nextafter(int(only.digest, 16) / 2**256, 0)
    assert not list(chosen([str(folder)], just_below))
