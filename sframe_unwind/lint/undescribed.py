"""Describes functions without rows, for consumers that must unwind every function or give up the stack.

A leaf function needs no rows if the consumer takes the return address from its register.  The code of a function shows
whether it is one; this needs the extra ``code``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from sframe_unwind.address import Range, gaps, merged
from sframe_unwind.code.image.alternatives import alternatives
from sframe_unwind.code.image.code_relocations import CodeRelocations
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.code.judge.one_address import FunctionCode
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import MissingExtraError, counted
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.subject import Subject
from sframe_unwind.named_tuple import NamedTuple

PADDING = 64
"""Maximum number of bytes without a symbol that are taken for padding: no producer aligns functions to more."""
_LARGEST = 1 << 16
"""Maximum size in bytes of a function that is interpreted; this size takes about a second."""
_ENTRY_TEXT = ("__entry_text_start", "__entry_text_end")
"""The symbols around the kernel's entry code."""
LEAF = "leaf: SP, frame pointer and return address are the caller's throughout"
ENTRY_CODE = "entry code"
TRAMPOLINE = "trampoline: like a leaf, but ends in a jump to another function"
ENDLESS = "does not return; SP, frame pointer and return address are the caller's throughout"
_PASSED = ("leaf", "trampoline")
"""The beginnings of the descriptions of functions that a consumer passes without rows."""


class Undescribed(NamedTuple):
    """A function, or code without a symbol, that no FDE describes."""

    start: int
    end: int
    """End address (exclusive)."""
    has_symbol: bool


def undescribed(subject: Subject, functions: Sequence[Described]) -> Iterator[tuple[Range, list[Undescribed]]]:
    """Yield each section of code, with its parts that no FDE describes.

    Padding between functions is left out, and what replaces other instructions of a kernel: it is executed elsewhere.
    """
    described = [(function.start, function.end) for function in functions if function.size]
    replacing = () if subject.binary is None else alternatives(subject.binary)
    covered = merged([*described, *((one.replacement, one.replacement + one.size) for one in replacing)])
    ends: dict[int, int] = {}
    for symbol in subject.symbols:
        if symbol.size:
            ends[symbol.address] = max(symbol.address + symbol.size, ends.get(symbol.address, 0))
    starts = sorted(ends)
    for code in subject.code:
        yield code, list(_undescribed(gaps(code, covered), starts, ends))


def _undescribed(without_fde: Sequence[Range], starts: Sequence[int], ends: Mapping[int, int]) -> Iterator[Undescribed]:
    for low, high in without_fde:
        inside = starts[bisect_left(starts, low) : bisect_left(starts, high)]
        at = low
        for number, start in enumerate(inside):
            if start - at >= PADDING:
                yield Undescribed(at, start, has_symbol=False)
            at = min(ends[start], high, *inside[number + 1 : number + 2])
            yield Undescribed(start, at, has_symbol=True)
        if high - at >= PADDING:
            yield Undescribed(at, high, has_symbol=False)


def undescribed_findings(subject: Subject, functions: Sequence[Described]) -> Iterator[Finding]:
    """Yield each function without rows with its description, and the share of the code that cannot be unwound."""
    if subject.binary is None:
        return
    entry = _entry_text(subject)
    total = 0
    kinds: dict[str, tuple[int, int]] = {}
    contents = _Code(subject.binary)
    for section, found in undescribed(subject, functions):
        total += section[1] - section[0]
        code = contents.at(section[0]) if found else b""
        for one in found:
            size = one.end - one.start
            content = code[one.start - section[0] :][:size]
            if not one.has_symbol and content and subject.arch.padding.fullmatch(content):
                continue  # more than aligns a function: a page, in kernels
            what = ENTRY_CODE if entry[0] <= one.start < entry[1] else _what(subject, one, content)
            kind = re.split(r"[:;]| from \+", what)[0]
            number, so_far = kinds.get(kind, (0, 0))
            kinds[kind] = number + 1, so_far + size
            message = f"{counted(size, 'byte')}: {what}"
            yield Finding(c.FUNCTION_WITHOUT_ROWS, message, None, one.start, subject.name_of(one.start))
    not_passed = sum(size for kind, (_, size) in kinds.items() if kind not in _PASSED)
    if not_passed:
        share = 100 * not_passed / total
        listed = sorted(kinds.items(), key=lambda item: -item[1][1])
        by_kind = ", ".join(f"{kind}: {number} ({counted(size, 'byte')})" for kind, (number, size) in listed)
        message = f"{not_passed} of {total} bytes of code ({share:.2f}%) are neither described nor leaf functions"
        message += f"; what has no rows: {by_kind}"
        yield Finding(c.NOT_PASSED, message)


def _entry_text(subject: Subject) -> Range:
    symbols = {symbol.name: symbol.address for symbol in subject.symbols if symbol.name in _ENTRY_TEXT}
    start, end = (symbols.get(name, 0) for name in _ENTRY_TEXT)
    return start, end


def _what(subject: Subject, one: Undescribed, code: bytes) -> str:
    """Return the description of a function according to its code.

    :param code: its bytes; fewer: the file does not have them all.
    """
    if not one.has_symbol:
        return "no symbol: data, or code"
    if len(code) < one.end - one.start or len(code) > _LARGEST:
        return "not looked at: too large, or not in the file"
    try:
        function = FunctionCode(subject.arch, one.start, code, subject.name_of(one.start))
    except MissingExtraError as error:
        return f"not looked at: {error}"
    judged, at = function.worst(subject.arch.call_rule)
    if judged is Judgement.WRONG:
        return f"not a leaf: SP, frame pointer or return address is another at +{at - one.start:#x}"
    if judged is Judgement.UNKNOWN:
        return f"not known by the code from +{at - one.start:#x}"
    if not function.leaves:
        return ENDLESS
    return LEAF if function.returns else TRAMPOLINE


class _Code:
    """The contents of the sections of code."""

    def __init__(self, binary: ElfBinary) -> None:
        addresses = binary.layout.addresses
        found = [section for section in binary.sections if section.has_contents and section.size]
        self._binary = binary
        self._sections = {addresses[section.number]: section for section in reversed(found)}
        self._relocations = CodeRelocations(binary) if binary.is_object else None

    def at(self, address: int) -> bytes:
        """Return the contents of the section at an address, relocated in an object file.

        They are empty if they are not in the file.
        """
        section = self._sections.get(address)
        if section is None:
            return b""
        contents = self._binary.contents(section)
        return self._relocations.applied(section.number, contents)[0] if self._relocations else contents
