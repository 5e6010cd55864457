"""A program made by hand, read through drgn: its memory, symbols and types."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import ClassVar

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import FileError, KernelError, MemoryReadError
from sframe_unwind.kernel.types import Types
from sframe_unwind.process import drgn_kernel
from sframe_unwind.process.drgn_kernel import DrgnKernel, open_dump
from sframe_unwind.process.target import SymbolMatch
from tests.missing import package_needed
from tests.samples.build import build

package_needed("drgn")

import drgn  # noqa: E402  # it is not installed everywhere

BASE = 0xFFFFFFC008000000


def made() -> DrgnKernel:
    """Return a program with one page of memory, a function, and structures like a kernel's."""
    program = drgn.Program(drgn.Platform(drgn.Architecture.AARCH64))
    page = bytes(range(256)) * 16
    program.add_memory_segment(BASE, len(page), lambda _address, size, offset, _physical: page[offset:][:size])
    symbol = drgn.Symbol("schedule", BASE + 0x10, 0x20, drgn.SymbolBinding.GLOBAL, drgn.SymbolKind.FUNC)

    def find_symbols(_program: drgn.Program, name: str | None, address: int | None, _one: bool) -> list[drgn.Symbol]:
        covers = address is None or symbol.address <= address < symbol.address + symbol.size
        return [symbol] if covers and name in (None, symbol.name) else []

    number = program.int_type("unsigned long", 8, False)
    registers = program.struct_type(
        *(None, 256, (drgn.TypeMember(program.array_type(number, 31), "regs"), drgn.TypeMember(number, "sp", 31 * 64)))
    )
    inner = program.union_type(None, 256, (drgn.TypeMember(registers, None),))
    flexible = program.array_type(number)
    found = program.struct_type(
        "pt_regs",
        272,
        (
            drgn.TypeMember(inner, None),
            drgn.TypeMember(program.typedef_type("u64", number), "pc", 256 * 8),
            drgn.TypeMember(flexible, "rest", 264 * 8),
        ),
    )

    def find_type(_program: drgn.Program, _kinds: object, name: str, _file: str | None) -> drgn.Type | None:
        return found if name == "pt_regs" else None

    program.register_symbol_finder("test", find_symbols, enable_index=0)
    program.register_type_finder("test", find_type, enable_index=0)
    return DrgnKernel(program)


def test_memory() -> None:
    assert made().read(BASE + 0x102, 3) == b"\2\3\4"
    with pytest.raises(MemoryReadError):
        made().read(BASE + 0xFFF, 2)
    with pytest.raises(MemoryReadError):
        made().read(1 << 64, 2)


def test_symbols() -> None:
    kernel = made()
    assert kernel.symbol("schedule") == BASE + 0x10
    assert kernel.symbol("nothing") is None
    assert kernel.function_at(BASE + 0x14) == SymbolMatch("schedule", 4)
    assert kernel.function_at(BASE) is None
    assert kernel.places(BASE) == []


def test_types() -> None:
    types = Types(made().structure)
    assert types.structure("pt_regs").size == 272
    assert types.place("pt_regs", "regs.30") == (240, 8)
    assert types.place("pt_regs", "sp") == (248, 8)
    assert types.place("pt_regs", "pc") == (256, 8)
    assert types.place("pt_regs", "rest") == (264, 0)
    with pytest.raises(KernelError):
        types.structure("task_struct")


def test_only_files_of_loaded_modules_are_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """drgn opens each file that it is given, and prints a line for one that no loaded module has."""
    dump, kernel = tmp_path / "vmcore", str(build("leaf", "aarch64", 3))
    dump.write_bytes(b"any")

    class Program:
        flags = drgn.ProgramFlags.IS_LINUX_KERNEL
        opened: ClassVar[list[list[str]]] = []

        def load_debug_info(self, files: list[str]) -> None:
            self.opened.append(files)

        def modules(self) -> list[drgn.Module]:
            program = drgn.Program(drgn.Platform(drgn.Architecture.AARCH64))
            program.relocatable_module("nf_tables", BASE, create=True)
            return list(program.modules())

    monkeypatch.setattr(drgn_kernel, "_program", lambda *_: Program())
    open_dump(str(dump), kernel, ("/m/ext4.ko", "/m/nf-tables.ko", "/m/nf_tables.ko.debug", "/m/nf_tables.txt"))
    assert Program.opened == [[kernel], ["/m/nf-tables.ko", "/m/nf_tables.ko.debug"]]
    Program.opened.clear()
    open_dump(str(dump), kernel, ("/m/ext4.ko",))
    assert Program.opened == [[kernel]]


def test_what_is_no_dump_of_a_kernel(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a dump", encoding="ascii")
    with pytest.raises(FileError, match=r"text: not a"):
        open_dump(str(text), str(build("leaf", "aarch64", 3)), ())
    with pytest.raises(FileError, match=r"text: not a"):
        open_dump(str(build("leaf", "aarch64", 3)), str(text), ())
    with pytest.raises(FileError, match="nothing: not a file"):
        open_dump(str(text), str(tmp_path / "nothing"), ())


def test_a_compressed_dump_without_the_name_of_the_system(tmp_path: Path) -> None:
    """QEMU writes such dumps; libkdumpfile needs the name for the architecture.  drgn raises a plain ``Exception``."""
    page = 4096
    header = struct.pack("<8si", b"KDUMP   ", 6).ljust(408, b"\0") + bytes(16)
    header += struct.pack("<IiiII", 1, page, 1, 2, 16)  # status, sizes in bytes and pages, pages of bitmaps, of memory
    dump = tmp_path / "vmcore"
    dump.write_bytes(header.ljust(4 * page, b"\0"))
    with pytest.raises(FileError, match="vmcore: drgn cannot read the dump: "):
        open_dump(str(dump), str(build("leaf", "amd64", 3)), ())


def test_a_bug_is_no_unreadable_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """drgn raises a plain ``Exception`` if libkdumpfile fails.  Any other exception is a bug."""
    dump, kernel = tmp_path / "vmcore", str(build("leaf", "amd64", 3))
    dump.write_bytes(b"any")

    def opened_with(error: Exception) -> None:
        def program(*_: object) -> None:
            raise error

        monkeypatch.setattr(drgn_kernel, "_program", program)
        open_dump(str(dump), kernel, ())

    with pytest.raises(FileError, match="vmcore: drgn cannot read the dump: no such page"):
        opened_with(Exception("no such page"))
    with pytest.raises(AttributeError, match="no such attribute"):
        opened_with(AttributeError("no such attribute"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "--vmcore needs the kernel's file: --exe vmlinux"),
        (["--exe", "x", "--regs", "pc=1,sp=2,fp=3"], "--regs, --ucontext and --jmpbuf are for --core and --pid"),
        (["--exe", "x"], "vmcore: not a file"),
    ],
)
def test_wrong_options(options: list[str], complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["backtrace", "--vmcore", str(tmp_path / "vmcore"), *options]) == 2
    assert complaint in capsys.readouterr().err
