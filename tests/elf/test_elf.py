"""SFrame sections in ELF files are found by name, type or segment; unsuitable files are refused."""

from __future__ import annotations

import re
import struct
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_GNU_SFRAME
from sframe_unwind.errors import FileError, FormatError, NoSFrameError
from sframe_unwind.sframe.encode import describe
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Miss
from tests.elf.objects import run, tools_for
from tests.missing import toolchain_needed
from tests.samples.build import build
from tests.samples.catalogue import ABIS
from tests.samples.readelf import read_sframe

EVERY = [(abi.name, version) for abi in ABIS.values() for version in abi.versions]


def sample(abi: str, version: int) -> Path:
    """Return a small program."""
    with toolchain_needed():
        return build("free_walk", abi, version)


def section_type(file: Path) -> object:
    with file.open("rb") as stream:
        return ELFFile(stream).get_section_by_name(".sframe")["sh_type"]


def place(file: Path) -> int:
    """Return the file offset of the section."""
    with file.open("rb") as stream:
        return int(ELFFile(stream).get_section_by_name(".sframe")["sh_offset"])


def load(file: Path) -> Section:
    (section,) = elf.load(file)
    return section


def without_section_headers(file: Path, folder: Path) -> Path:
    """Write a copy that has only segments, which are sufficient for loaders."""
    content = bytearray(file.read_bytes())
    content[40:48] = bytes(8)  # e_shoff
    content[60:64] = bytes(4)  # e_shnum, e_shstrndx
    copy = folder / "stripped"
    copy.write_bytes(content)
    return copy


@pytest.mark.parametrize(("abi", "version"), EVERY)
def test_the_functions_are_those_that_readelf_prints(abi: str, version: int) -> None:
    file = sample(abi, version)
    printed = read_sframe(tools_for(abi, version), file)
    section = load(file)
    assert section.tables[0].header.version == printed.version == version
    assert section.tables[0].arch.name == abi
    assert [(f.start, f.fde.size) for f in section.functions()] == [(f.start, f.size) for f in printed.functions]
    assert [f.fde.num_rows for f in section.functions()] == [len(f.rows) for f in printed.functions]


@pytest.mark.parametrize(("version", "kinds"), [(2, ("SHT_PROGBITS",)), (3, (SHT_GNU_SFRAME, "SHT_GNU_SFRAME"))])
def test_item_02_either_section_type_is_found_by_name(version: int, kinds: tuple[int | str, ...]) -> None:
    file = sample("amd64", version)
    assert section_type(file) in kinds  # newer versions of pyelftools know the name
    assert len(list(load(file).functions())) > 0


def test_item_02_found_by_type_under_another_name(tmp_path: Path) -> None:
    file = sample("amd64", 3)
    other = tmp_path / "other"
    run(tools_for("amd64", 3) / "objcopy", "--rename-section", ".sframe=.another", file, other)
    with other.open("rb") as stream:
        assert ELFFile(stream).get_section_by_name(".sframe") is None
    assert describe(load(other)) == describe(load(file))


@pytest.mark.parametrize(("abi", "version"), EVERY)
def test_item_02_found_by_segment(abi: str, version: int, tmp_path: Path) -> None:
    """GNU ld's segment is longer than the section in it, so the headers determine the length."""
    file = sample(abi, version)
    assert describe(load(without_section_headers(file, tmp_path))) == describe(load(file))


@pytest.mark.parametrize("lazy", [True, False])
def test_read_at_once_or_in_pieces(lazy: bool) -> None:
    file = sample("amd64", 3)
    (section,) = elf.load(file, lazy=lazy)
    assert describe(section) == describe(load(file))


@pytest.mark.parametrize(
    ("abi", "number", "message"),
    [
        ("amd64", 2, "SFrame ABI 2 (aarch64) in a little-endian file for EM_X86_64 (.sframe offset 0x4)"),
        ("aarch64", 3, "SFrame ABI 3 (amd64) in a little-endian file for EM_AARCH64 (.sframe offset 0x4)"),
        ("aarch64_be", 4, "SFrame ABI 4 (s390x) in a big-endian file for EM_AARCH64 (.sframe offset 0x4)"),
        ("s390x", 1, "SFrame ABI 1 (aarch64_be) in a big-endian file for EM_S390 (.sframe offset 0x4)"),
    ],
)
def test_item_06_abi_against_the_machine(abi: str, number: int, message: str, tmp_path: Path) -> None:
    file = sample(abi, 3)
    content = bytearray(file.read_bytes())
    content[place(file) + 4] = number
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        elf.load(damaged)
    assert str(caught.value) == message


def test_item_06_byte_order_against_the_machine(tmp_path: Path) -> None:
    """A section of the other byte order, consistent in itself."""
    little, big = sample("aarch64", 3), sample("aarch64_be", 3)
    content = bytearray(little.read_bytes())
    at = place(little)
    content[at : at + 28] = big.read_bytes()[place(big) :][:8] + bytes(20)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    with pytest.raises(FormatError, match=r"SFrame ABI 1 \(aarch64_be\) in a little-endian file for EM_AARCH64"):
        elf.load(damaged)


def test_no_section(tmp_path: Path) -> None:
    stripped = tmp_path / "none"
    run(tools_for("amd64", 3) / "objcopy", "--remove-section", ".sframe", sample("amd64", 3), stripped)
    content = bytearray(stripped.read_bytes())
    # objcopy leaves the segment, but without its contents.
    start, size, number = struct.unpack_from("<Q14xHH", content, 32)
    for entry in range(start, start + size * number, size):
        if struct.unpack_from("<I", content, entry)[0] == PT_GNU_SFRAME:
            content[entry : entry + 4] = bytes(4)
    stripped.write_bytes(content)
    with pytest.raises(NoSFrameError) as caught:
        elf.load(stripped)
    assert str(caught.value) == f"{stripped}: no .sframe section"


def test_item_01_an_empty_section_in_a_file(tmp_path: Path) -> None:
    source, result = tmp_path / "empty.s", tmp_path / "empty.o"
    source.write_text('.section .sframe, "a"\n', encoding="ascii")
    run(tools_for("amd64", 3) / "as", "-o", result, source)
    section = load(result)
    assert section.tables == []
    assert isinstance(section.lookup(0), Miss)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        elf.load(tmp_path / "missing")
    assert str(caught.value) == f"{tmp_path / 'missing'}: No such file or directory"
    with pytest.raises(FileError, match="Is a directory"):
        elf.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01" + bytes(100)])
def test_no_elf_file(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises((FileError, NoSFrameError), match=str(file)):
        elf.load(file)


def test_a_32_bit_file(tmp_path: Path) -> None:
    source, result = tmp_path / "empty.s", tmp_path / "empty.o"
    source.write_text("nop\n", encoding="ascii")
    run(tools_for("amd64", 3) / "as", "--32", "-o", result, source)
    with pytest.raises(FileError, match="a 32-bit ELF file; SFrame exists for 64-bit ABIs only"):
        elf.load(result)


def test_every_truncation_is_a_documented_error(tmp_path: Path) -> None:
    file = sample("amd64", 3)
    content = file.read_bytes()
    truncated = tmp_path / "truncated"
    for size in [*range(0, len(content), max(len(content) // 60, 1)), place(file) + 10, len(content) - 1]:
        truncated.write_bytes(content[:size])
        with pytest.raises((FileError, NoSFrameError, FormatError)):
            elf.load(truncated)


def test_a_section_beyond_the_end_of_the_file(tmp_path: Path) -> None:
    """Without section headers, only the segment has the place of the data."""
    file = without_section_headers(sample("amd64", 3), tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[: place(sample("amd64", 3)) + 40])
    with pytest.raises(FileError, match=r"truncated: SFrame data ends at 0x\w+, the file at 0x"):
        elf.load(file)


def test_program_headers_that_are_not_in_the_file() -> None:
    """`e_phnum` of 0xffff means that section 0 has the number, which can be any."""
    content = bytearray(sample("amd64", 3).read_bytes())
    struct.pack_into("<H", content, 56, 0xFFFF)  # e_phnum
    (sections,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<I", content, sections + 44, 0xFFFFFFFF)  # sh_info of section 0
    for size, said in ((0, "program headers of 0 bytes, expected 56"), (56, "its program headers end at ")):
        struct.pack_into("<QQ", content, 24, 0, 0)
        struct.pack_into("<H", content, 54, size)  # e_phentsize
        with pytest.raises(FileError, match=re.escape(said)), elf.parsed(BytesIO(content), "file") as binary:
            assert binary.segments


def test_many_headers_of_one_section() -> None:
    content = bytearray(sample("amd64", 3).read_bytes())
    start, count = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    headers = content[start : start + 64 * count]
    text = next(headers[at : at + 64] for at in range(0, len(headers), 64) if headers[at + 8] & 4)  # SHF_EXECINSTR
    repeated = 5000
    struct.pack_into("<Q", content, 40, len(content))
    struct.pack_into("<H", content, 60, count + repeated)
    content += headers + text * repeated
    with pytest.raises(FileError, match=f"<bytes>: {count + repeated:,} sections of .* bytes in all, in a file of"):
        elf.load(bytes(content))


@pytest.mark.parametrize(
    ("magic", "program"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b\x08\0", "gzip"), (b"\xfd7zXZ\0", "xz")]
)
def test_compressed_file(magic: bytes, program: str) -> None:
    with pytest.raises(FileError, match=f"compressed; {program} -d decompresses it"):
        elf.load(magic + bytes(100))
