"""Which addresses have CFI, against pyelftools' decoding of all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from sframe_unwind.errors import FormatError
from sframe_unwind.image.eh_frame import EhFrame, SectionData
from tests.image.test_elf_image import libraries
from tests.samples.build import build


def pieces(path: Path) -> tuple[SectionData, SectionData | None, list[tuple[int, int]], str]:
    """Return ``.eh_frame``, ``.eh_frame_hdr``, the address ranges of all FDEs by pyelftools, and the byte order."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        sections = [elf.get_section_by_name(name) for name in (".eh_frame", ".eh_frame_hdr")]
        found = [section and SectionData(section["sh_addr"], section.data()) for section in sections]
        ranges = [
            (entry["initial_location"], entry["initial_location"] + entry["address_range"])
            for entry in elf.get_dwarf_info().EH_CFI_entries()
            if isinstance(entry, FDE)
        ]
        assert found[0] is not None
        return found[0], found[1], ranges, "little" if elf.little_endian else "big"


def samples() -> list[Path]:
    """Return files of several producers and byte orders."""
    library = next(Path(name) for name in libraries() if "libc" in name)
    return [
        library,
        build("stepper"),
        build("plt", version=1, variant="O0"),
        build("callback", abi="aarch64"),
        build("free_walk", abi="aarch64_be"),
        build("callback", abi="s390x"),
    ]


@pytest.mark.parametrize("with_index", [True, False])
def test_every_boundary_agrees_with_pyelftools(with_index: bool) -> None:
    checked = 0
    for path in samples():
        frames, index, ranges, byteorder = pieces(path)
        eh_frame = EhFrame(frames, index if with_index else None, byteorder)
        probes = {pc for start, end in ranges for pc in (start - 1, start, end - 1, end)}
        for pc in sorted(probes)[:4000]:
            expected = any(start <= pc < end for start, end in ranges)
            assert eh_frame.covers(pc) == expected, f"{path.name}: {pc:#x}"
            checked += 1
    assert checked > 4000


def test_damaged_index_is_an_error() -> None:
    frames, index, _, byteorder = pieces(build("stepper"))
    assert index is not None
    damaged = SectionData(index.address, index.data[:2] + b"\xff" + index.data[3:])
    with pytest.raises(FormatError, match="eh_frame_hdr begins with"):
        EhFrame(frames, damaged, byteorder).covers(0x1000)


def test_truncated_frames_are_an_error() -> None:
    frames, index, ranges, byteorder = pieces(build("stepper"))
    short = SectionData(frames.address, frames.data[:30])
    with pytest.raises(FormatError):
        EhFrame(short, index, byteorder).covers(ranges[-1][0])
