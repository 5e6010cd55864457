"""DWARF CFI that is made from rules gives the same rules when it is decoded."""

from __future__ import annotations

import pytest

from sframe_unwind.arch import ARCHES, BY_NAME
from sframe_unwind.cfi.records import Records
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description, of_cfi
from sframe_unwind.translation.proof import prove
from sframe_unwind.translation.to_debug_frame import make_debug_frame, without_gaps
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule


@pytest.mark.parametrize("abi", [arch.name for arch in ARCHES])
def test_every_kind_of_rule_comes_back(abi: str) -> None:
    """Rules for every kind of instruction that the encoder has are encoded, and decoded again."""
    arch = BY_NAME[abi]
    places = [None, *(RegisterRule(CFA, offset, memory) for offset in (-16, -3, 8, 512) for memory in (True, False))]
    places += [RegisterRule(40, offset, memory) for offset in (0, -9, 700) for memory in (True, False)]
    cfas = [
        RegisterRule(base, offset, memory)
        for base in (arch.sp, arch.fp, 40)
        for offset in (0, 8, -16, -3, 9000)
        for memory in (True, False)
    ]
    rules: list[UnwindRule] = [UnwindRule(cfas[0], RegisterRule(CFA, -8, True), None)]
    for number, cfa in enumerate(cfas):
        rules += [
            UnwindRule(cfa, ra or RegisterRule(CFA, -8, True), fp, bool(arch.pac_mask and number % 2))
            for ra, fp in zip(places, reversed(places))
        ]
    rules.insert(7, OUTERMOST)
    offsets = [0]
    for number in range(1, len(rules)):
        offsets.append(offsets[-1] + (1, 63, 64, 300, 70_000)[number % 5])
    size = offsets[-1] + 4
    for signal in (False, True):
        key = PauthKey.B if arch.pac_mask else PauthKey.A
        source = Description(0x10000, 0x10000 + size, (offsets, rules), signal, key)
        made = make_debug_frame([source], arch)
        assert made.losses == ()
        records = Records(made.data, 0, arch, debug_frame=True)
        decoded = [of_cfi(fde.decode(), CfiRules(arch)) for _, fde in records.fdes(True, [])]
        assert prove([source], decoded, [], arch) == len(rules)


def test_gaps_are_left_out() -> None:
    rule = UnwindRule(RegisterRule(7, 8, False), RegisterRule(CFA, -8, True), None)
    whole = Description(0x1000, 0x1010, ([0, 4], [rule, OUTERMOST]), False, PauthKey.A)
    gaps = whole._replace(rules=([2, 4, 6], [rule, None, OUTERMOST]))
    parts = [(one.start, one.end, one.rules) for one in without_gaps([whole, gaps])]
    assert parts == [
        (0x1000, 0x1010, whole.rules),
        (0x1002, 0x1004, ([0], [rule])),
        (0x1006, 0x1010, ([0], [OUTERMOST])),
    ]
