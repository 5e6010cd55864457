"""Completes the descriptions of a file's functions by its machine code."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from sframe_unwind.address import Range, gaps, merged, overlap
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.code.judge.findings import DWARF, Finding
from sframe_unwind.code.rows.function import RuleCounts, counted_rules
from sframe_unwind.code.rows.whole_file import FunctionRows
from sframe_unwind.convert.from_code import (
    NO_TYPE,
    NOTHING_KNOWN,
    description_of,
    functions_by_code,
    known_functions,
    untyped_code,
)
from sframe_unwind.convert.kernel_entry import outermost_code
from sframe_unwind.elf import ElfBinary
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.translation.description import Description, Loss, of_outermost
from sframe_unwind.verify.code_check import check_elf
from sframe_unwind.verify.plan import Plan


class Completed(NamedTuple):
    """The functions of a file: those of its CFI, and others."""

    kept: list[Description]
    """The functions that are described by their CFI."""
    by_code: list[Description]
    """The functions that are described by their machine code; one whose rows have gaps becomes several."""
    outermost: list[Description]
    """The entry code of a kernel whose frames are the outermost ones."""
    losses: list[Loss]
    """The code without a row."""
    replaced: list[Loss]
    """The functions whose CFI the code proves wrong, and in what; they are not among those kept."""
    rules: RuleCounts
    """The rules of :attr:`by_code`."""


class _Refuted(NamedTuple):
    """A function whose CFI the code proves wrong."""

    description: Description
    """The description by the CFI."""
    findings: list[Finding]


def completed(binary: ElfBinary, by_cfi: Sequence[Description]) -> Completed:
    """Return the functions of a file: by its CFI, and by the machine code where CFI is missing or wrong.

    Where the code of a function with wrong CFI has no row, that of the CFI is used unless it is wrong there.

    :param by_cfi: the functions by CFI; none: all come from the code.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    expressible = [one for one in by_cfi if not any(isinstance(rule, NoRule) for rule in one.rules[1])]
    refuted = _refuted(binary, expressible) if expressible else {}
    kept = [one for one in expressible if one.start not in refuted]
    covered = merged((one.start, one.end) for one in kept)
    plts = [(section.address, section.end) for section in binary.sections if section.name.startswith(".plt")]
    outermost = [extent for extent in outermost_code(binary) if not overlap([extent], covered)]
    covered = merged([*covered, *outermost])
    made, losses, pieces, seen = list[Description](), list[Loss](), [], list(covered)
    for function in functions_by_code(binary, known_functions(binary)):
        if overlap([(function.start, function.end)], covered):
            continue
        seen.append((function.start, function.end))
        found = [description_of(piece, (function.start, function.end) in plts) for piece in function.pieces]
        if function.start in refuted:
            found += _left(refuted[function.start], _missing(function, found))
        made += found
        pieces += function.pieces
        losses += [Loss(start, end, NOTHING_KNOWN) for start, end in _missing(function, found)]
    losses += [Loss(start, end, NO_TYPE) for start, end in untyped_code(binary, merged(seen))]
    beside = (extent for extent in untyped_code(binary, []) if overlap([extent], merged(outermost)))
    losses += [Loss(start, end, NO_TYPE) for extent in beside for start, end in gaps(extent, covered)]
    replaced = [Loss(one.description.start, one.description.end, _what(one.findings)) for one in refuted.values()]
    return Completed(
        kept=kept,
        by_code=made,
        outermost=[of_outermost(*extent) for extent in outermost],
        losses=losses,
        replaced=replaced,
        rules=counted_rules(pieces),
    )


def _missing(function: FunctionRows, found: Iterable[Description]) -> list[Range]:
    """Return the parts of a function that are not described."""
    return gaps((function.start, function.end), merged((one.start, one.end) for one in found))


def _refuted(binary: ElfBinary, by_cfi: Sequence[Description]) -> Mapping[int, _Refuted]:
    """Return the functions whose CFI the code proves wrong, by their start."""
    found: dict[int, _Refuted] = {}
    starts = [one.start for one in by_cfi]
    for finding in check_elf(binary, None, Plan(code=True, jobs=os.cpu_count() or 1)).findings:
        number = bisect_right(starts, finding.address) - 1
        if finding.table != DWARF or finding.assumes or number < 0 or finding.address >= by_cfi[number].end:
            continue
        description = by_cfi[number]
        found.setdefault(description.start, _Refuted(description, [])).findings.append(finding)
    return found


def _left(refuted: _Refuted, missing: Iterable[Range]) -> list[Description]:
    """Return the CFI of parts of a function that the code has no row for, as far as it is not wrong there."""
    wrong = merged((one.address, one.end) for one in refuted.findings)
    return [_part(refuted.description, *left) for start, end in missing for left in gaps((start, end), wrong)]


def _part(description: Description, start: int, end: int) -> Description:
    """Return the description of a part of a function."""
    offsets, rules = description.rules
    low = start - description.start
    first = bisect_right(offsets, low) - 1
    kept: list[tuple[int, Said | None]] = [(0, rules[first])] if first >= 0 else []
    kept += [(at - low, rule) for at, rule in zip(offsets, rules) if low < at < end - description.start]
    return description._replace(start=start, end=end, rules=([at for at, _ in kept], [rule for _, rule in kept]))


def _what(findings: Sequence[Finding]) -> str:
    """Return what is wrong, in words."""
    first = findings[0]
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"at {first.address:#x}, {first.what} {first.rule}; by the code, {first.code}{more}"
