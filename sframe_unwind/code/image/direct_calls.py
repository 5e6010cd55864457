"""Finds direct calls by the bytes of the code alone, without decoding what is around them.

Where the instructions begin is not known, so bytes within other instructions, or constants, can look like a call.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.code.image.code_image import CodeImage


def called_before(image: CodeImage, arch: Arch, return_address: int) -> int | None:
    """Return the target of the direct call that ends at an address; ``None``: none does."""
    size = arch.call_size
    section = image.section(return_address - size)
    if section is None or not section.executable or return_address > section.end:
        return None
    offset = return_address - section.start
    return arch.call_target(section.contents[offset - size : offset], return_address)


def possible_targets(image: CodeImage, arch: Arch, start: int, end: int) -> list[int]:
    """Return the addresses of code to which what looks like a direct call in a range of code leads, ascending.

    :param end: end address (exclusive).
    """
    section = image.section(start)
    if section is None or not section.executable:
        return []
    size, target_of, unit = arch.call_size, arch.call_target, arch.instruction_unit
    first = start - section.start
    code = section.contents[first : end - section.start]
    targets = (target_of(code[at : at + size], start + at + size) for at in range(0, len(code) - size + 1, unit))
    return sorted({target for target in targets if target is not None and image.is_code(target)})
