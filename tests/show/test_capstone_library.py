"""Instructions that are read from capstone's library as one block are those of capstone's package."""

from __future__ import annotations

import ctypes
import struct
from importlib import import_module
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.show import capstone_library
from sframe_unwind.show.capstone_library import decoder, split
from tests.missing import package_needed
from tests.samples.build import build

_Listed = list[tuple[int, int, tuple[str, str]]]


def code_of(program: Path) -> tuple[bytes, int]:
    """Return the code of a program, and bytes after it that are no instructions of AMD64 and s390x."""
    with elf.opened(program) as binary:
        section = binary.named(".text")
        assert section is not None
        return binary.contents(section) + b"\x06\x00\xff\xff" * 4, section.address


def listed(abi: str, code: bytes, address: int) -> _Listed:
    machine = MACHINES[abi]
    found = decoder(*machine.disassembler, machine.att_syntax)
    assert found is not None
    # The second time, the library gets memory that it has used, in which the texts are longer or shorter.
    found.records(code[:0:-1], address)
    return [(at, size, split(texts)) for at, size, texts in found.records(code, address)]


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "aarch64_be", "s390x"])
def test_library_and_package_give_the_same(abi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package_needed("capstone")
    code, address = code_of(build("free_walk" if abi == "aarch64_be" else "plt", abi))
    by_library = listed(abi, code, address)
    monkeypatch.setattr(capstone_library, "_library", lambda: None)
    assert listed(abi, code, address) == by_library
    assert len(by_library) > 60
    assert by_library[0][0] == address


def test_the_library_is_loaded_without_the_package() -> None:
    package_needed("capstone")
    assert isinstance(decoder(*MACHINES["amd64"].disassembler, True), capstone_library._Library)


@pytest.mark.parametrize("why", ["version", "chosen", "damaged"])
def test_another_library_is_left_to_the_package(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package_needed("capstone")
    import_module("capstone")  # it could not load its library later on
    program = str(build("plt"))
    assert main(["show", program, "--no-code"]) == 1
    expected = capsys.readouterr().out
    if why == "version":
        monkeypatch.setattr(capstone_library, "_VERSION", 4)
    elif why == "chosen":
        monkeypatch.setenv("LIBCAPSTONE_PATH", str(tmp_path))
    else:
        monkeypatch.setattr(ctypes, "CDLL", _not_loaded)
    assert main(["show", program, "--no-code"]) == 1
    assert capsys.readouterr().out == expected
    assert isinstance(decoder(*MACHINES["amd64"].disassembler, True), capstone_library._Package)


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "aarch64_be", "s390x"])
def test_a_library_with_another_layout_is_left_to_the_package(abi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package_needed("capstone")
    machine = MACHINES[abi]
    assert isinstance(decoder(*machine.disassembler, machine.att_syntax), capstone_library._Library)
    for layout in ("=8xQ2xH22x32s160s14x", "=16xQH24x32s160s6x", "=8xQH16x32s160s22x"):
        # Without the check, other numbers and texts would be taken for the instructions.
        assert struct.calcsize(layout) == capstone_library._SIZE
        monkeypatch.setattr(capstone_library, "_RECORDS", struct.Struct(layout).iter_unpack)
        assert isinstance(decoder(*machine.disassembler, machine.att_syntax), capstone_library._Package)


def _not_loaded(path: str) -> None:
    raise OSError(f"{path}: invalid ELF header")


def test_code_without_instructions() -> None:
    package_needed("capstone")
    found = decoder(*MACHINES["aarch64"].disassembler, False)
    assert found is not None
    assert found.records(b"", 0) == found.records(b"\x1f", 0) == []
