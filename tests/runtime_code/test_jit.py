"""JIT images without a debugger: replaced images, and damaged lists."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch.amd64 import ARCH
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.runtime_code.source import RunTimeCode
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind_rule import RegisterRule
from tests.runtime_code.programs import jit

DESCRIPTOR, ENTRY, IMAGE, CODE = 0x1000, 0x1100, 0x2000, 0x700000


class Memory:
    """A process with one image, always at the same address; its code cannot be read."""

    def __init__(self, image: bytes) -> None:
        self.bytes = bytearray(1 << 16)
        self.put(DESCRIPTOR, "IIQQ", 1, 0, ENTRY, ENTRY)
        self.put(ENTRY, "QQQQ", 0, 0, IMAGE, len(image))
        self.bytes[IMAGE : IMAGE + len(image)] = image

    def put(self, address: int, layout: str, *values: int) -> None:
        """Write numbers."""
        struct.pack_into("<" + layout, self.bytes, address, *values)

    def read(self, address: int, size: int) -> bytes:
        """Read bytes; the tests give this function to the core."""
        if address + size > len(self.bytes):
            raise MemoryReadError(address, size)
        return bytes(self.bytes[address : address + size])

    def modules(self, lines: list[str]) -> Modules:
        """Return the modules of the process."""
        symbols = {"__jit_debug_descriptor": [DESCRIPTOR]}
        run_time = RunTimeCode(ARCH, self.read, lambda name: symbols.get(name, []), lines.append)
        return Modules(ARCH, [], lines.append, run_time=run_time)


def placed(path: Path) -> bytes:
    """Return an object file that claims to have its code at CODE, as jit.c writes it."""
    image = bytearray(path.read_bytes())
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        for number, section in enumerate(elf.iter_sections()):
            if section.name == ".text":
                struct.pack_into("<Q", image, elf["e_shoff"] + number * elf["e_shentsize"] + 16, CODE)
    return bytes(image)


@pytest.fixture
def images() -> tuple[bytes, bytes]:
    """Return two images with frames of two sizes, padded to the same length."""
    _, *paths = jit("amd64")
    first, second = map(placed, paths)
    length = max(len(first), len(second))
    return first.ljust(length, b"\0"), second.ljust(length, b"\0")


def frame_size(process: Modules) -> int | None:
    """Return the distance of the CFA from SP in the body of the function."""
    answer = process.results[CODE + 16]
    if not isinstance(answer, Found):
        return None
    assert answer.rule.cfa is not None
    assert answer.rule.cfa == RegisterRule(7, answer.rule.cfa.offset, False)
    return answer.rule.cfa.offset


def test_image_is_replaced_in_its_place(images: tuple[bytes, bytes]) -> None:
    """Only the bytes of the image show that it is another one."""
    memory, lines = Memory(images[0]), list[str]()
    process = memory.modules(lines)
    assert process.run_time is not None
    small = frame_size(process)
    assert small is not None
    assert process.run_time.name(CODE + 16) == "jitted"
    process.look_again()
    assert CODE + 16 in process.results  # nothing has changed
    memory.bytes[IMAGE : IMAGE + len(images[1])] = images[1]
    process.look_again()
    large = frame_size(process)
    assert large is not None
    assert large - small == 36 * 8  # ROOM is 4 and 40
    memory.put(DESCRIPTOR, "IIQQ", 1, 0, 0, 0)
    process.look_again()
    assert frame_size(process) is None
    assert not lines


@pytest.mark.parametrize(
    ("damage", "expected", "works"),
    [
        ((DESCRIPTOR, "I", 7), "the list of JIT images at 0x1000 ends early: it has version 7, expected 1", False),
        ((ENTRY, "Q", ENTRY), "the list of JIT images at 0x1000 ends early: it is circular or too long", True),
        ((ENTRY, "Q", 0xDEAD0000), "the list of JIT images at 0x1000 ends early: cannot read 32 bytes", True),
        ((ENTRY + 24, "Q", 1 << 60), "the JIT image at 0x2000 is not used: it has 1,152,921,504,606,846,976", False),
        ((ENTRY + 16, "Q", 0xDEAD0000), "the JIT image at 0xdead0000 is not used: ", False),
        ((IMAGE, "Q", 0), "the JIT image at 0x2000 is not used: ", False),
    ],
    ids=["version", "cycle", "dangling", "size", "address", "magic"],
)
def test_damaged_lists(images: tuple[bytes, bytes], damage: tuple[int, str, int], expected: str, works: bool) -> None:
    memory, lines = Memory(images[0]), list[str]()
    memory.put(*damage)
    process = memory.modules(lines)
    assert (frame_size(process) is not None) == works
    process.look_again()
    (line,) = lines
    assert line.startswith(expected)
