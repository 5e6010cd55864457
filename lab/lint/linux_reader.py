"""Linux's reader for user stacks, implemented again from its rules; it shares no code with the package.

The rules are those of ``kernel/unwind/sframe.c`` of the series v13 (not merged), by its functions: reasons to refuse a
section at its registration, errors that end one stack (EINVAL), and errors that remove the section (EFAULT).
"""

from __future__ import annotations

from struct import calcsize, unpack_from

MAGIC = 0xDEE2
SORTED, PCREL = 1, 4
HEADER, FDE, ATTRIBUTES = "HBBBbbBIIIII", "qII", "HBBB"
WRAP = 1 << 64


class Einval(Exception):  # noqa: N818  # named as the kernel's error
    """The stack ends here."""


class Efault(Exception):  # noqa: N818  # named as the kernel's error
    """The section is removed."""


class DivideError(Exception):
    """The kernel divides by zero."""


class Section:
    """A registered section.

    Raises Einval if registration fails.
    """

    def __init__(self, data: bytes, start: int, text: tuple[int, int], order: str) -> None:
        self.data, self.start, self.text = data, start, text
        self.mark = "<" if order == "little" else ">"
        if len(data) < calcsize("<" + HEADER):
            raise Einval("header")
        magic, version, flags, _, fp, ra, aux, fdes, fres, length, fde_at, fre_at = self.get(HEADER, 0)
        if magic != MAGIC or version != 3 or not flags & SORTED or not flags & PCREL or aux:
            raise Einval("unsupported header")
        if not fdes or not fres:
            raise Einval("no entries")
        end = calcsize("<" + HEADER)
        if end >= len(data):
            raise Einval("the header fills the section")
        self.fdes = end + fde_at
        self.fres = end + fre_at
        self.fres_end = self.fres + length
        if self.fres < self.fdes + fdes * calcsize("<" + FDE) or self.fres_end > len(data):
            raise Einval("offsets")
        self.count, self.fixed_ra, self.fixed_fp = fdes, ra, fp

    def get(self, layout: str, at: int) -> tuple[int, ...]:
        return unpack_from(self.mark + layout, self.data, at)

    def function(self, number: int) -> int:
        """Return the address of a function."""
        at = self.fdes + number * calcsize("<" + FDE)
        return (self.start + at + self.get(FDE, at)[0]) % WRAP

    def read_fde(self, number: int) -> tuple[int, int, int, int, int, int, int]:
        """Return address, size, offset of the first row, number of rows, info, info2, repetition size."""
        at = self.fdes + number * calcsize("<" + FDE)
        _, size, offset = self.get(FDE, at)
        address = self.function(number)
        if not self.text[0] <= address < self.text[1]:
            raise Einval("outside the text")
        if self.fres + offset + calcsize("<" + ATTRIBUTES) > self.fres_end:
            raise Einval("attributes")
        rows, info, info2, repetition = self.get(ATTRIBUTES, self.fres + offset)
        return address, size, self.fres + offset + calcsize("<" + ATTRIBUTES), rows, info, info2, repetition

    def read_row(self, fde: tuple[int, int, int, int, int, int, int], at: int) -> tuple[int, int, tuple[int, ...]]:
        """Return the place of the next row, the offset of this one in the function, and its data words."""
        _, size, _, _, info, info2, _ = fde
        if info & 0xF > 2:
            raise Efault("FRE type")
        width = 1 << (info & 0xF)
        if at + width + 1 > self.fres_end:
            raise Efault("row")
        (offset,) = self.get("BHI"[info & 0xF], at)
        if not info & 0x10 and offset > size:
            raise Efault("after the function")
        (row,) = self.get("B", at + width)
        count, word = row >> 1 & 0xF, row >> 5 & 3
        if word > 2:
            raise Efault("size of data words")
        following = at + width + 1 + (count << word)
        if following > self.fres_end:
            raise Efault("data words")
        words = self.get("BHI"[word] * count, at + width + 1)
        self.read_words(info2 & 0x1F, words)
        return following, offset, words

    def read_words(self, kind: int, words: tuple[int, ...]) -> None:
        if kind not in (0, 1):
            raise Efault("FDE type")
        left = len(words)
        if kind == 0:
            if not words:
                return
            left -= 1
            for fixed in (self.fixed_ra, self.fixed_fp):
                if not fixed and left:
                    left -= 1
        else:
            if left < 2:
                raise Efault("flexible row")
            left -= 2
            for _ in ("ra", "fp"):
                if left >= 2:
                    left -= 2 if words[len(words) - left] else 1
        if left:
            raise Efault("left over")

    def rows(self, fde: tuple[int, int, int, int, int, int, int]) -> list[tuple[int, bool]]:
        """Return the offset of each row, and whether its CFA can be used."""
        at = fde[2]
        found: list[tuple[int, bool]] = []
        for _ in range(fde[3]):
            at, offset, words = self.read_row(fde, at)
            if found and offset <= found[-1][0]:
                raise Efault("rows not ascending")
            # A row without words reaches the rule of the CFA with control word 0, which has no register.
            flexible = bool(fde[5] & 0x1F)
            found.append((offset, bool(words) and (not flexible or bool(words[0] & 1))))
        return found

    def found(self, number: int, offset: int) -> bool:
        """Return whether a lookup finds a row at an offset of a function; raise Efault or DivideError."""
        fde = self.read_fde(number)
        if offset >= fde[1]:
            return False
        if fde[4] & 0x10:
            if not fde[6]:
                raise DivideError
            offset %= fde[6]
        usable = False
        for start, is_usable in self.rows(fde):
            if start > offset:
                break
            usable = is_usable
        return usable


Verdict = tuple[str, tuple[tuple[int, int], ...]]
"""``refused``, ``loses`` or ``accepted``; address and number of lost bytes of each function with losses."""


def verdict(data: bytes, start: int, text: tuple[int, int], order: str) -> Verdict:
    """Return the verdict on a section, assuming that every function is looked up."""
    try:
        section = Section(data, start, text, order)
        starts = [section.function(number) for number in range(section.count)]
        if any(later <= earlier for earlier, later in zip(starts, starts[1:])):
            raise Efault("FDEs not strictly ascending")
        extents = [_check(section, number) for number in range(section.count)]
    except (Einval, Efault, DivideError):
        return "refused", ()
    lost = []
    for number, (address, size) in enumerate(extents):
        missing = _missing(section, starts, number, address, address + size)
        if missing:
            lost.append((address, missing))
    return ("loses" if lost else "accepted"), tuple(lost)


def _check(section: Section, number: int) -> tuple[int, int]:
    """Return address and size of a function; raise Efault or DivideError as at the first lookup."""
    at = section.fdes + number * calcsize("<" + FDE)
    extent = section.function(number), section.get(FDE, at)[1]
    try:
        fde = section.read_fde(number)
    except Einval:
        return extent
    section.rows(fde)
    if extent[1]:
        section.found(number, 0)
    return extent


def _missing(section: Section, starts: list[int], number: int, low: int, high: int) -> int:
    """Return how many addresses of a range have no row; the last FDE that begins at or before an address has its rows.

    :param number: number of the FDE for the start of the range.
    """
    total = 0
    while low < high:
        while number + 1 < len(starts) and starts[number + 1] <= low:
            number += 1
        end = min(high, starts[number + 1]) if number + 1 < len(starts) else high
        total += _missing_in(section, number, low - starts[number], end - starts[number])
        low = end
    return total


def _missing_in(section: Section, number: int, low: int, high: int) -> int:
    """Return the same for one FDE, in offsets from its function's start."""
    try:
        fde = section.read_fde(number)
    except Einval:
        return high - low
    size = min(max(fde[1], low), high)
    total = high - size
    if fde[4] & 0x10 and low < size:
        block = [section.found(number, offset) for offset in range(min(fde[6], fde[1]))]
        block += [False] * (fde[6] - len(block))
        bad = block.count(False)
        for sign, end in ((1, size), (-1, low)):
            whole, rest = divmod(end, fde[6])
            total += sign * (whole * bad + block[:rest].count(False))
        return total
    marks = sorted({low, size, *(start for start, _ in section.rows(fde) if low < start < size)})
    for begin, end in zip(marks, marks[1:]):
        if not section.found(number, begin):
            total += end - begin
    return total
