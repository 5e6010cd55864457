"""The comparison of a program file without a process, checked against that of its sections at their addresses."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.file_agreement import agreement_of_file
from sframe_unwind.debugger.module_agreement import Difference
from sframe_unwind.errors import FileError, FormatError
from tests.code.assembled import assemble
from tests.debugger.module_file import AMD64, NEVER, File
from tests.hanging import HANG
from tests.samples.build import build


def difference(path: Path, build_id: str = "") -> Difference | None:
    """Return the result of the tested comparison."""
    return agreement_of_file(DebugFile(str(path), build_id), AMD64).advance(NEVER)


def build_id_of(path: Path) -> str:
    """Return the build ID that the file has."""
    with elf.opened(path) as binary:
        return binary.build_id


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("sample", ["leaf", "recursion", "sframe_only", "sframe_only_stripped"])
def test_as_by_the_sections(sample: str, version: int) -> None:
    path = build(sample, version=version)
    expected = File(path).agreement().advance(NEVER)
    assert difference(path, build_id_of(path)) is expected
    assert expected is (Difference.NO_CFI if "only" in sample else Difference.NONE)


def test_without_sframe() -> None:
    assert difference(Path("/bin/sh"), build_id_of(Path("/bin/sh"))) is Difference.NONE


def test_a_file_without_build_id_is_not_that_of_a_module_with_one(tmp_path: Path) -> None:
    path, without = build("leaf"), tmp_path / "without"
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", path, without], check=True, timeout=HANG)
    with pytest.raises(FormatError, match=f"expected build ID {build_id_of(path)}, found none"):
        difference(without, build_id_of(path))
    checksum = f"{zlib.crc32(without.read_bytes()):08x}"  # this is what LLDB has in its place
    assert difference(without, checksum) is difference(without) is difference(path, build_id_of(path))


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    path = build("leaf")
    with pytest.raises(FormatError, match=f"expected build ID 1234, found {build_id_of(path)}"):
        difference(path, "1234")
    with pytest.raises(FormatError, match="expected a linked file, found an object file"):
        difference(assemble("amd64", ".text\nnop\n", tmp_path / "part.o"))
    with pytest.raises(FileError, match="expected a file for amd64, found a big-endian one for EM_S390"):
        agreement_of_file(DebugFile(str(build("leaf", "s390x")), ""), AMD64)
    for name in ("missing", ".", "with\0NUL"):
        with pytest.raises(FileError):
            difference(tmp_path / name)
