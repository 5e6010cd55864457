"""The reader of Linux for user stacks, transcribed (``lab/lint/linux_reader.py``): no released kernel has it."""

from __future__ import annotations

from typing import Any

from lab.lint.linux_reader import DivideError, Efault, Einval, Section
from lab.readers.adapters.libsframe import REGISTERS, UNKNOWN
from lab.readers.notation import SAME, place, row
from lab.readers.protocol import RefusedError, Request, serve

_MAGIC = b"\xde\xe2"
"""The first bytes of a big-endian section; the reader then runs as on a big-endian machine."""
_FLEXIBLE, _MASK, _SIGNED, _S390X = 0x1F, 0x10, 0x80, 4
_EVERYWHERE = (0, 1 << 64)
"""The range of the text: the cases have no file around them."""


def read(request: Request) -> list[Any]:
    """Return the row for each address."""
    order = "big" if request.section.startswith(_MAGIC) else "little"
    try:
        section = Section(request.section, request.address, _EVERYWHERE, order)
    except Einval as error:
        raise RefusedError(str(error)) from error
    rows: list[Any] = []
    for pc in request.pcs:
        try:
            rows.append(_row(section, pc))
        except Einval as error:
            rows.append({"error": str(error)})
        except Efault as error:  # the section is removed
            raise RefusedError(str(error)) from error
        except DivideError as error:
            raise RefusedError("divides by zero") from error
    return rows


def _row(section: Section, pc: int) -> Any:
    low, high = 0, section.count
    while low < high:
        middle = (low + high) // 2
        if section.function(middle) <= pc:
            low = middle + 1
        else:
            high = middle
    if not low:
        return None
    fde = section.read_fde(low - 1)
    address, size, at, count, info, info2, repetition = fde
    offset = pc - address
    if offset >= size:
        return None
    if info & _MASK:
        if not repetition:
            raise DivideError
        offset %= repetition
    found = None
    for _ in range(count):
        following, start, words = section.read_row(fde, at)
        if start > offset:
            break
        row_info = section.data[at + (1 << (info & 0xF))]
        found, at = (row_info, _signed(words, row_info)), following
    if found is None:
        return None
    row_info, words = found
    if not words:  # the kernel takes the CFA's register from the words before it checks for the outermost row
        raise Einval("no register")
    places = _flexible(section, row_info, words) if info2 & _FLEXIBLE else _default(section, row_info, words)
    return row(places, bool(row_info & _SIGNED))


def _signed(words: tuple[int, ...], row_info: int) -> tuple[int, ...]:
    """Return data words, which the transcription reads unsigned, as signed numbers."""
    top = 1 << (8 << (row_info >> 5 & 3)) - 1
    return tuple((word ^ top) - top for word in words)


def _default(section: Section, row_info: int, words: tuple[int, ...]) -> list[str]:
    abi = section.data[4]
    cfa = words[0] * 8 + 160 if abi == _S390X else words[0]
    rest = list(words[1:])
    places = [place(REGISTERS.get(abi, UNKNOWN)[row_info & 1], cfa, False)]
    for fixed in (section.fixed_ra, section.fixed_fp):
        value = fixed or (rest.pop(0) if rest else 0)
        places.append(place(None, value, True) if value else SAME)
    return places


def _flexible(section: Section, row_info: int, words: tuple[int, ...]) -> list[str]:
    width = 1 << (row_info >> 5 & 3)
    mask = (1 << 8 * width) - 1
    rest, places = list(words), []
    for number, fixed in enumerate((0, section.fixed_ra, section.fixed_fp)):
        control = rest.pop(0) & mask if rest else 0
        if not control:
            if not number:
                raise Einval("no register")
            places.append(place(None, fixed, True) if fixed else SAME)
            continue
        offset = rest.pop(0)
        if not number and section.data[4] == _S390X:
            offset = offset * 8 + 160
        if not number and not control & 1:
            raise Einval("no register")
        places.append(place(control >> 3 if control & 1 else None, offset, bool(control & 2)))
    return places


if __name__ == "__main__":
    serve(read)
