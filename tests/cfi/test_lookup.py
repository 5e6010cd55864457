"""Lookup of addresses in CFI, compared with pyelftools' decoding of the whole section."""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FormatError
from sframe_unwind.memory import LazyBytes
from tests.samples.build import build
from tests.unwind.own import own_libraries


@cache
def pieces(path: Path) -> tuple[SectionData, SectionData | None, list[tuple[int, int]]]:
    """Return ``.eh_frame``, ``.eh_frame_hdr`` and the address ranges of all FDEs by pyelftools, in ascending order."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        sections = [elf.get_section_by_name(name) for name in (".eh_frame", ".eh_frame_hdr")]
        found = [section and SectionData(section["sh_addr"], section.data()) for section in sections]
        ranges = sorted(
            (entry["initial_location"], entry["initial_location"] + entry["address_range"])
            for entry in elf.get_dwarf_info().EH_CFI_entries()
            if isinstance(entry, FDE)
        )
        assert found[0] is not None
        assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:]))
        return found[0], found[1], ranges


def samples() -> list[tuple[Path, Arch]]:
    """Return files of several producers and byte orders."""
    library = next(Path(name) for name in own_libraries() if "/libc.so." in name)
    built = {
        "amd64": (library, build("stepper"), build("plt", version=1, variant="O0")),
        "aarch64": (build("callback", abi="aarch64"),),
        "aarch64_be": (build("free_walk", abi="aarch64_be"),),
        "s390x": (build("callback", abi="s390x"),),
    }
    return [(path, BY_NAME[name]) for name, paths in built.items() for path in paths]


def _lazy(section: SectionData) -> SectionData:
    """Return a section whose parts are read on demand, as from the memory of a process."""
    whole = section.data
    return SectionData(section.address, LazyBytes(lambda offset, size: whole[offset : offset + size], len(whole), 64))


@pytest.mark.parametrize("index_form", ["whole", "lazy", "none"])
def test_every_boundary_agrees_with_pyelftools(index_form: str) -> None:
    checked = 0
    for path, arch in samples():
        frames, index, ranges = pieces(path)
        starts = [start for start, _ in ranges]
        indexes = {"whole": index, "lazy": index and _lazy(index), "none": None}
        eh_frame = CfiSection(frames, indexes[index_form], arch)
        probes = {pc for start, end in ranges for pc in (start - 1, start, end - 1, end)}
        for pc in sorted(probes)[:4000]:
            before = bisect_right(starts, pc)
            expected = before > 0 and pc < ranges[before - 1][1]
            assert eh_frame.covers(pc) == expected, f"{path.name}: {pc:#x}"
            checked += 1
    assert checked > 4000


class _Counted(bytes):
    """Data that counts the reads of its parts."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        self.reads += 1
        return super().__getitem__(key)


class _CountedLazy(LazyBytes):
    """The same, in the form in which the index is searched step by step."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        type(self).reads += 1
        return super().__getitem__(key)


def test_the_fde_that_was_found_last_is_not_searched_again() -> None:
    frames, index, ranges = pieces(build("stepper"))
    assert index is not None
    whole = index.data[:]
    data, table = _Counted(frames.data[:]), _CountedLazy(lambda offset, size: whole[offset : offset + size], len(whole))
    section = CfiSection(SectionData(frames.address, data), SectionData(index.address, table), BY_NAME["amd64"])
    start, end = max(ranges, key=lambda extent: extent[1] - extent[0])
    assert section.covers(start)
    before = data.reads, table.reads
    assert all(section.covers(pc) for pc in range(start, end))
    assert (data.reads, table.reads) == before
    assert section.covers(next(first for first, _ in ranges if first != start))
    assert table.reads > before[1]


def test_an_fde_within_another_is_found_whatever_was_found_before() -> None:
    """The result is equal to that of a new section, in which no FDE was found before."""
    frames, index, ranges = pieces(build("stepper"))
    first, (start, _) = sorted(ranges)[:2]
    size = struct.pack("<I", first[1] - first[0])
    place = next(
        at
        for at in range(12, len(frames.data), 4)
        if frames.data[at : at + 4] == size
        and frames.address + at - 4 + int.from_bytes(frames.data[at - 4 : at], "little", signed=True) == first[0]
    )
    longer = frames.data[:place] + struct.pack("<I", sorted(ranges)[-1][1] - first[0]) + frames.data[place + 4 :]
    changed = SectionData(frames.address, longer)
    section = CfiSection(changed, index, BY_NAME["amd64"])
    probes = [first[0], start, start - 1, *(pc for extent in ranges for pc in extent), first[0], start]
    for pc in probes:
        assert section.find(pc) == CfiSection(changed, index, BY_NAME["amd64"]).find(pc), hex(pc)
    assert section.find(first[0]) != section.find(start)


def test_damaged_index_is_an_error() -> None:
    frames, index, _ = pieces(build("stepper"))
    assert index is not None
    damaged = SectionData(index.address, b"\x02" + index.data[1:])
    with pytest.raises(FormatError, match="eh_frame_hdr version 2, expected 1"):
        CfiSection(frames, damaged, BY_NAME["amd64"]).covers(0x1000)


@pytest.mark.parametrize(("field", "encoding"), [(2, 0xFF), (3, 0xFF), (3, 0x1B)])
def test_index_that_cannot_be_searched_is_not_used(field: int, encoding: int) -> None:
    frames, index, ranges = pieces(build("stepper"))
    assert index is not None
    data = index.data[:field] + bytes([encoding]) + index.data[field + 1 :]
    section = CfiSection(frames, SectionData(index.address, data), BY_NAME["amd64"])
    assert all(section.covers(start) for start, _ in ranges)


def test_truncated_frames_are_an_error() -> None:
    frames, index, ranges = pieces(build("stepper"))
    short = SectionData(frames.address, frames.data[:30])
    with pytest.raises(FormatError):
        CfiSection(short, index, BY_NAME["amd64"]).covers(ranges[-1][0])


@pytest.mark.parametrize("terminated", [True, False])
def test_data_after_a_section_of_unknown_size_is_not_read(terminated: bool) -> None:
    """Debian 13's dynamic loader for AArch64 has no record of length 0 after the last FDE; a note follows it."""
    frames, index, ranges = pieces(build("stepper"))
    assert frames.data[-4:] == bytes(4)
    note = struct.pack("<III4sI", 4, 8, 0xCAFE1A7E, b"FDO", 0xCAFE1A7E)
    data = frames.data[: None if terminated else -4] + note
    section = CfiSection(SectionData(frames.address, data), index, BY_NAME["amd64"], size_known=False)
    assert [extent[:2] for extent in section.extents()] == sorted(ranges)
    assert not section.problems


def test_place_of_the_last_fde_outside_the_section_is_an_error() -> None:
    frames, index, _ = pieces(build("stepper"))
    assert index is not None
    far = index.data[:-4] + struct.pack("<i", frames.address + len(frames.data) - index.address)
    section = CfiSection(frames, SectionData(index.address, far), BY_NAME["amd64"], size_known=False)
    with pytest.raises(FormatError, match="CFI record needs 4 bytes, the section has 0 left"):
        section.extents()
