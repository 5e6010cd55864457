"""Headers of files, compared with those that pyelftools reads; records written back; damaged headers."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE, ENUM_E_TYPE

from sframe_unwind.arch import ARCHES
from sframe_unwind.elf.constants import SHN_XINDEX
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.headers import Headers
from sframe_unwind.elf.machines import machine_name, machine_number, type_name
from sframe_unwind.elf.records import HEADER_SIZE, encoded, identification
from sframe_unwind.errors import FileError
from tests.elf.objects import run, tools_for
from tests.samples.build import build
from tests.samples.catalogue import ABIS

SECTION = ("sh_name", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign", "sh_entsize")
SEGMENT = ("p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")


@pytest.mark.parametrize("abi", ABIS)
def test_headers_are_those_of_pyelftools(abi: str) -> None:
    path = build("free_walk", abi)
    with path.open("rb") as stream:
        expected, found = ELFFile(stream), Reader(stream)
        assert (found.machine, found.type_name, found.entry_point) == (
            *(expected["e_machine"], expected["e_type"], expected["e_entry"]),
        )
        assert found.byteorder == ("little" if expected.little_endian else "big")
        segments = [tuple(one[name] for name in SEGMENT) for one in expected.iter_segments()]
        assert [tuple(one[1:]) for one in found.segments] == segments
        sections = [(one.name, *(one[name] for name in SECTION)) for one in expected.iter_sections()]
        assert [(one.name, one.name_offset, *one[2:10]) for one in found.sections] == sections
        assert [one.number for one in found.sections] == list(range(len(sections)))


@pytest.mark.parametrize("abi", ABIS)
def test_records_are_written_as_they_were(abi: str) -> None:
    content = build("free_walk", abi).read_bytes()
    headers = Headers(io.BytesIO(content))
    header, order = headers.header, headers.byteorder
    assert encoded([header], order) == content[:HEADER_SIZE]
    assert content.startswith(identification(order)[:7])
    segments, sections = encoded(headers.segments, order), encoded(headers.sections, order)
    assert segments == content[header.phoff : header.phoff + 56 * header.phnum]
    assert sections == content[header.shoff : header.shoff + 64 * header.shnum]


def test_names_are_those_of_pyelftools() -> None:
    numbers = {number: name for name, number in ENUM_E_MACHINE.items() if isinstance(number, int)}
    named = {number: machine_name(number) for number in range(300) if not machine_name(number).isdigit()}
    assert {arch.elf_machine for arch in ARCHES} | {"EM_RISCV", "EM_386", "EM_PPC64"} <= set(named.values())
    assert {number: name for number, name in named.items() if numbers.get(number, name) != name} == {}
    assert all(machine_number(name) == number for number, name in named.items())
    assert [type_name(number) for number in range(5)] == sorted(list(ENUM_E_TYPE)[:5], key=ENUM_E_TYPE.__getitem__)
    assert (machine_name(9999), type_name(77)) == ("9999", "77")


def test_numbers_that_do_not_fit_the_header(tmp_path: Path) -> None:
    """66,000 sections: the number and the index of the names are in the first section header."""
    source, path = tmp_path / "many.s", tmp_path / "many.o"
    source.write_text("".join(f".section .s{number}\n" for number in range(66_000)), encoding="ascii")
    run(tools_for("amd64", 3) / "as", source, "-o", path)
    with path.open("rb") as stream:
        headers = Headers(stream)
        assert (headers.header.shnum, headers.header.shstrndx) == (0, SHN_XINDEX)
        assert headers.sections[headers.names_number].name == ".shstrtab"
        assert ".s65999" in {one.name for one in headers.sections}
        assert len(headers.sections) > 66_000


def damaged(at: int, value: bytes) -> bytes:
    content = bytearray(build("leaf").read_bytes())
    content[at : at + len(value)] = value
    return bytes(content)


WRONG = {
    "not a readable ELF file: Invalid EI_CLASS b'\\x07'": (4, b"\7"),
    "not a readable ELF file: Invalid EI_DATA b'\\x03'": (5, b"\3"),
    "a 32-bit ELF file; SFrame exists for 64-bit ABIs only": (4, b"\1"),
    "program headers of 57 bytes, expected 56": (54, struct.pack("<H", 57)),
    "section headers of 63 bytes, expected 64": (58, struct.pack("<H", 63)),
    "its section headers end at": (40, struct.pack("<Q", 1 << 50)),
    "its program headers end at": (32, struct.pack("<Q", 1 << 63)),
}


@pytest.mark.parametrize("message", WRONG)
def test_damaged_header(message: str) -> None:
    with pytest.raises(FileError) as error:
        _all(damaged(*WRONG[message]))
    assert message in str(error.value)


def _all(content: bytes) -> None:
    headers = Headers(io.BytesIO(content))
    assert headers.segments
    assert headers.sections


@pytest.mark.parametrize("size", [0, 3, 4, 5, 6, 40, 63])
def test_truncated_header(size: int) -> None:
    with pytest.raises(FileError, match="the file is empty" if not size else "not a readable ELF file"):
        Headers(io.BytesIO(build("leaf").read_bytes()[:size]))
