"""Compares a kernel's ORC with the other table of the same file, at every address where either changes."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import merged, overlap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi import agreement
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.explanation import vector_lengths
from sframe_unwind.code.judge.findings import DWARF, SFRAME
from sframe_unwind.code.judge.judgement import RowRule, SumRule
from sframe_unwind.code.judge.tables import RuleTable
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import FileError
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind_rule import UnwindRule
from sframe_unwind.verify.code_tables import CfiTable, OrcRules, SFrameTable
from sframe_unwind.verify.orc_report import OrcDisagreement, OrcReport
from sframe_unwind.verify.rules import words
from sframe_unwind.verify.terms import Gap


def compared(binary: ElfBinary, sections: list[Section] | None) -> OrcReport:
    """Compare the ORC of a file with its SFrame, or with its DWARF CFI if it has no SFrame.

    :param sections: the SFrame.
    :raises FileError: there is no ORC, or nothing to compare it with.
    :raises FormatError: the ORC or the CFI is malformed.
    """
    if binary.orc is None:
        raise FileError("no ORC (.orc_unwind): only kernels for AMD64 and their modules have it")
    orc = OrcRules(binary.orc, binary.symbols)
    name, other = (SFRAME, SFrameTable(sections)) if sections else (DWARF, CfiTable(binary.cfi, binary.arch))
    described = other.ranges()
    if not described:
        raise FileError("neither SFrame nor DWARF CFI to compare ORC with")
    addresses, without = 0, []
    disagreements: list[OrcDisagreement] = []
    for function in (CodeRange(start, end) for start, end in described):
        pairs = list(_pairs(function, orc, other))
        if not pairs:
            without.append(function)
        addresses += len(pairs)
        for pc, one, two in pairs:
            for difference in _differences(one, two, binary.arch):
                place = binary.layout.spot(pc), binary.function_name(pc)
                disagreements.append(OrcDisagreement(pc, *place, *difference))
    covered = merged(described)
    orc_only = [CodeRange(*one) for one in sorted(set(orc.ranges())) if not overlap([one], covered)]
    return OrcReport(
        table=name,
        both=len(described) - len(without),
        addresses_compared=addresses,
        disagreements=tuple(disagreements),
        orc_only=tuple(_named(binary, one) for one in orc_only),
        other_only=tuple(_named(binary, one) for one in without),
    )


def _named(binary: ElfBinary, function: CodeRange) -> tuple[str, Gap]:
    return binary.function_name(function.start), Gap(binary.layout.spot(function.start), function.end - function.start)


def _pairs(function: CodeRange, orc: RuleTable, other: RuleTable) -> Iterator[tuple[int, RowRule, RowRule]]:
    """Yield the rules of both tables at each address at which one of them changes, if both tables have one there."""
    by_orc, by_other = orc.rows(function), other.rows(function)
    for pc in sorted({*by_orc.starts, *by_other.starts}):
        if function.start <= pc < function.end:
            one, two = by_orc.at(pc), by_other.at(pc)
            if one is not None and two is not None:
                yield pc, one, two


def _differences(one: RowRule, two: RowRule, arch: Arch) -> Iterator[tuple[str, str, str]]:
    """Yield each of ``cfa``, ``ra`` and ``fp`` in which two rules differ, with both rules in words."""
    if isinstance(one, UnwindRule) and isinstance(two, UnwindRule):
        texts = words(one, arch), words(two, arch)
        for what in agreement.differences(one, two, arch):
            yield what, getattr(texts[0], what), getattr(texts[1], what)
    elif one != two:
        yield "cfa", _cfa(one, arch), _cfa(two, arch)


def _cfa(rule: RowRule, arch: Arch) -> str:
    if isinstance(rule, str):
        return rule
    if isinstance(rule, UnwindRule):
        return words(rule, arch).cfa
    added = f" + {rule.added}" if isinstance(rule, SumRule) else vector_lengths(rule.scales.cfa)
    return words(rule.rule, arch).cfa + added
