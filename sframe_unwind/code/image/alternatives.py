"""The alternatives of Linux: instructions that the kernel replaces by others when it starts.

``.altinstructions`` has a ``struct alt_instr`` for each: the distances of 32 bits from these fields to the instructions
and to those that replace them, the feature of the processor that decides, and the sizes of both in bytes.  The latter
instructions are among the code, but are not executed there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Alternatives
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.elf import ElfBinary
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple

_SECTION = ".altinstructions"
_ENTRY = "iiHBB"
_SIZE = 4
"""Size of an instruction in bytes."""


class Alternative(NamedTuple):
    """Instructions, and those that may replace them."""

    start: int
    replacement: int
    """Address of the first replacing instruction."""
    size: int
    """Size of both in bytes."""


def alternatives(binary: ElfBinary) -> Iterator[Alternative]:
    """Yield the alternatives of a kernel or a module; none: the machine's entries have another layout."""
    section = binary.named(_SECTION)
    if section is None or not section.has_contents or _kind(binary) is None:
        return
    data, address = binary.relocated(section), binary.layout.addresses[section.number]
    layout = struct.Struct(STRUCT_MARKS[binary.byteorder] + _ENTRY)
    for offset in range(0, len(data) - layout.size + 1, layout.size):
        start, replacement, _, size, replaced_by = layout.unpack_from(data, offset)
        if size == replaced_by:  # 0: a function of the kernel makes the instructions
            entry = address + offset
            yield Alternative(entry + start & ADDRESS_MASK, entry + 4 + replacement & ADDRESS_MASK, size)


def alternative_jumps(binary: ElfBinary, image: CodeImage) -> Iterator[tuple[int, int]]:
    """Yield address and target of each jump that is replaced by a ``nop``, or replaces one."""
    kind = _kind(binary)
    if kind is None:
        return
    for start, replacement, size in alternatives(binary):
        for at in range(0, size, _SIZE):
            words = image.read(start + at, _SIZE), image.read(replacement + at, _SIZE)
            for word, other, place in ((*words, start), (*words[::-1], replacement)):
                distance = None if word is None or other != kind.nop else kind.jump(word)
                if distance is not None and image.is_code(start + at):
                    yield start + at, place + at + distance & ADDRESS_MASK


def _kind(binary: ElfBinary) -> Alternatives | None:
    kernel = binary.arch.linux_kernel
    return None if kernel is None else kernel.alternatives
