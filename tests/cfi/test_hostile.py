"""Call frame information that costs time or memory: the work is bounded by its size, and by named limits."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.elf import opened
from sframe_unwind.elf.constants import SHF_COMPRESSED
from sframe_unwind.errors import FileError
from sframe_unwind.verify import verify
from tests.cfi.hostile import INPUTS
from tests.elf.objects import tools_for
from tests.hanging import HANG

CHECKOUT = Path(__file__).resolve().parents[2]
MEMORY = 100 << 20
"""Maximum number of bytes that decoding one input may take in addition to the process's memory before."""
SIZE_FIELD = 32
"""Offset of ``sh_size`` in a section header, in bytes."""


@pytest.mark.parametrize("name", INPUTS)
def test_input_is_bounded(name: str) -> None:
    """It is decoded in another process, whose memory is limited.

    Decoding takes a second at most; work that grew with the square of an input would take hours, that is, hang.
    """
    command = [sys.executable, "-m", "tests.cfi.hostile", name, str(MEMORY)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.removesuffix("\n").endswith(INPUTS[name][1])


def compressed(folder: Path, directives: str) -> Path:
    """Assemble and link a function with a compressed .debug_frame."""
    tools = tools_for("amd64", 3)
    function = ".globl f\n.type f, @function\nf: .cfi_startproc\nret\n.cfi_endproc\n"
    source = f'{function}.section .debug_frame,""\n{directives}\n'
    made, program = folder / "made.o", folder / "program.so"
    command = [str(tools / "as"), "--gsframe", "--compress-debug-sections=zlib", "-o", str(made), "-"]
    subprocess.run(command, input=source, text=True, check=True, timeout=HANG)
    link = [str(tools / "ld"), "-shared", "--compress-debug-sections=zlib", "-o", str(program), str(made)]
    subprocess.run(link, check=True, timeout=HANG)
    return program


def test_compressed_section_that_grows_a_thousandfold(tmp_path: Path) -> None:
    program = compressed(tmp_path, ".zero 50000000")
    with pytest.raises(FileError, match=r"debug_frame claims to be 50,000,000 bytes compressed to [0-9,]+, more"):
        verify(program)


def test_compressed_section_that_ends_after_the_file(tmp_path: Path) -> None:
    program = compressed(tmp_path, ".zero 5000")
    with opened(program) as binary:
        number = [section.name for section in binary.sections].index(".debug_frame")
        header = binary.header
    content = program.read_bytes()
    size = header.shoff + number * header.shentsize + SIZE_FIELD
    longer = struct.pack("<Q", 1 << 45)
    program.write_bytes(content[:size] + longer + content[size + len(longer) :])
    with pytest.raises(FileError, match=r": \.debug_frame is compressed, and ends at 0x2[0-9a-f]+, after the file$"):
        verify(program)


def test_compressed_section_is_read(tmp_path: Path) -> None:
    cie = ".long 12, -1\n.byte 4, 0, 8, 0, 1, 0x78, 16, 0\n"
    fdes = "".join(f".long 20, 0\n.quad f+{number}, 1\n" for number in range(1000))
    with opened(compressed(tmp_path, cie + fdes)) as binary:
        section = binary.named(".debug_frame")
        assert section is not None
        assert section.flags & SHF_COMPRESSED
        assert not binary.cfi.problems
