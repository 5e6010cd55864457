"""ELF images in memory and the dynamic linker's list, compared with /proc/PID/maps and pyelftools."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.image.link_map import AT_BASE, AT_PHDR, AT_SYSINFO_EHDR, loaded_images
from tests.unwind.own import own_auxv, own_libraries, own_mappings, read_own


def test_program_headers_in_memory_are_those_of_the_file() -> None:
    checked = 0
    for name, address in own_libraries().items():
        image = read_image(read_own, address)
        with Path(name).open("rb") as stream:
            segments = list(ELFFile(stream).iter_segments())
        assert image.bias == address
        assert [segment.address - image.bias for segment in image.segments] == [s["p_vaddr"] for s in segments]
        assert [segment.memory_size for segment in image.segments] == [s["p_memsz"] for s in segments]
        checked += 1
    assert checked >= 2  # a C library and a dynamic linker, at least


def test_code_ranges_are_mapped_executable() -> None:
    for name, address in own_libraries().items():
        executable = [(start, end) for start, end, permissions in own_mappings()[name] if "x" in permissions]
        for start, end in read_image(read_own, address).code_ranges():
            assert any(first <= start and end <= last for first, last in executable)


@pytest.mark.parametrize("address", [0, 8, 0xFFFF_FFFF_FFFF_F000, 1 << 64])
def test_no_image_where_no_memory_is(address: int) -> None:
    with pytest.raises(FormatError, match="no ELF image at"):
        read_image(read_own, address)


def test_a_segment_that_ends_after_the_program_headers() -> None:
    """A small static program whose core file lacks memory: the file has no more data for that page."""
    address = next(iter(own_libraries().values()))
    start = read_own(address, 1024)
    (count,) = struct.unpack_from("=H", start, 56)
    end = address + 64 + 56 * count

    def read(at: int, size: int) -> bytes:
        if at + size > end:
            raise MemoryReadError(at, size)
        return read_own(at, size)

    assert read_image(read, address) == read_image(read_own, address)


def test_no_image_in_other_bytes() -> None:
    with pytest.raises(FormatError, match="no 64-bit ELF image at 0x10: found 7f454c460101"):
        read_image(lambda _, size: b"\x7fELF\x01\x01".ljust(size, b"\0"), 0x10)


def test_damaged_program_headers() -> None:
    header = bytearray(read_own(min(own_libraries().values()), 64))
    struct.pack_into("=H", header, 56, 0xFFFF)
    with pytest.raises(FormatError, match="65535 program headers of 56 bytes"):
        read_image(lambda *_: bytes(header), 0)


def test_list_of_the_dynamic_linker_is_the_kernels() -> None:
    images = loaded_images(read_own, own_auxv(), "little")
    by_path = {str(Path(item.name).resolve()): item.image.bias for item in images}  # links lead to the mapped files
    for name, address in own_libraries().items():
        assert by_path[name] == address
    loaded = {item.name: item.image.bias for item in images}
    assert loaded["vDSO"] == own_auxv()[AT_SYSINFO_EHDR]
    executable = own_mappings()[str(Path("/proc/self/exe").resolve())]
    assert any(start <= own_auxv()[AT_PHDR] < end for start, end, _ in executable)
    assert "executable" in loaded


def test_nothing_known_nothing_found() -> None:
    assert loaded_images(read_own, {}, "little") == []
    assert loaded_images(read_own, {AT_PHDR: 0x40, AT_BASE: 0x1234}, "little") == []


def test_cyclic_list_ends() -> None:
    """A list whose entries point at each other, in memory of this process."""
    images = loaded_images(read_own, own_auxv(), "little")
    executable = next(item.image for item in images if item.name == "executable")
    reads: list[int] = []

    def damaged(address: int, size: int) -> bytes:
        reads.append(address)
        if size == 32:  # struct link_map: point back at itself
            return struct.pack("=QQQQ", 0, 0, 0, address)
        return read_own(address, size)

    found = loaded_images(damaged, own_auxv(), "little")
    assert [item.image.bias for item in found if item.name == "executable"] == [executable.bias]
    assert len(reads) < 200


def test_unreadable_list_keeps_what_was_found() -> None:
    def half(address: int, size: int) -> bytes:
        if size == 32:
            raise MemoryReadError(address, size)
        return read_own(address, size)

    assert {item.name for item in loaded_images(half, own_auxv(), "little")} >= {"executable", "vDSO"}
