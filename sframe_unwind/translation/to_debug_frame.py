"""Makes call frame information (``.debug_frame``) from the rules of other tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sframe_unwind.arch import Arch
from sframe_unwind.cfi import encode
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.errors import EncodeError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PauthKey
from sframe_unwind.translation.description import Description, Loss
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule, UnwindRule

_MAX_ROWS = 1 << 20
"""Maximum number of rows of a function.  Mask FDEs are written out; the largest PLT has some thousand entries."""


class Made(NamedTuple):
    """A section, and the functions that it lacks."""

    data: bytes
    losses: tuple[Loss, ...]


def make_debug_frame(descriptions: Iterable[Description], arch: Arch, offset: int = 0) -> Made:
    """Return ``.debug_frame`` for functions without gaps (:func:`without_gaps`).

    Registers that a function must preserve are marked as undefined.  SFrame does not tell where it saved them, and
    debuggers take a register without a rule as unchanged.

    :param offset: section offset of the first byte, where other records precede it.
    """
    column = arch.return_column
    mark = STRUCT_MARKS[arch.byteorder]
    area, cies, losses = bytearray(), dict[str, int](), []
    entry = _at_entry(arch)
    for description in sorted(descriptions, key=lambda one: (one.start, one.end)):
        try:
            code = _instructions(description, entry, arch, column, mark)
        except EncodeError as error:
            losses.append(Loss(description.start, description.end, str(error)))
            continue
        letters = "S" * description.signal + "B" * (description.pauth_key is PauthKey.B)
        augmentation = "z" * bool(letters) + letters
        if augmentation not in cies:
            cies[augmentation] = offset + len(area)
            area += encode.cie(augmentation, column, _common(entry, arch, column), mark)
        size = description.end - description.start
        area += encode.fde(
            cie_offset=cies[augmentation],
            start=description.start,
            size=size,
            augmented=bool(letters),
            code=code,
            mark=mark,
        )
    return Made(bytes(area), tuple(losses))


def without_gaps(descriptions: Iterable[Description]) -> Iterator[Description]:
    """Yield descriptions; one with gaps is split into the parts that have rules."""
    for description in descriptions:
        offsets, said = description.rules
        size = description.end - description.start
        if offsets and not offsets[0] and None not in said:
            yield description
            continue
        ends = [*offsets[1:], size]
        for offset, end, rule in zip(offsets, ends, said):
            if rule is not None and offset < min(end, size):
                start = description.start
                yield description._replace(start=start + offset, end=start + min(end, size), rules=([0], [rule]))


def _at_entry(arch: Arch) -> UnwindRule:
    """Return the rule at the entry of a function."""
    cfa = RegisterRule(arch.sp, -arch.sp_from_cfa, False)
    if arch.ra is not None:
        return UnwindRule(cfa, None, None)
    return UnwindRule(cfa._replace(offset=8), RegisterRule(CFA, -8, True), None)  # the call pushed it


def _common(entry: UnwindRule, arch: Arch, column: int) -> bytes:
    """Return the instructions of a CIE."""
    code = encode.change(UnwindRule(None, None, None), entry, arch, column)
    if arch.sp_from_cfa:
        code += encode.register(arch.sp, RegisterRule(CFA, arch.sp_from_cfa, False))
    return code + b"".join(encode.register(number, UNDEFINED) for number in arch.preserved)


def _instructions(description: Description, entry: UnwindRule, arch: Arch, column: int, mark: str) -> bytes:
    """Return the instructions of a function.

    :raises EncodeError: DWARF cannot express one of its rules, or it has too many rows.
    """
    offsets, said = description.rules
    if len(offsets) > _MAX_ROWS:
        raise EncodeError(f"{len(offsets):,} rows, more than {_MAX_ROWS:,}")
    code, before, at = bytearray(), entry, 0
    size = description.end - description.start
    for offset, rule in zip(offsets, said):
        if offset >= size:
            break
        after = _complete(rule, before)
        changed = encode.change(before, after, arch, column)
        if changed:
            if offset > at:
                code += encode.advance(offset - at, mark)
                at = offset
            code += changed
            before = after
    return bytes(code)


def _complete(rule: Said | None, before: UnwindRule) -> UnwindRule:
    """Return a rule with a CFA; if the return address is undefined, the CFA is that of the previous row."""
    if not isinstance(rule, UnwindRule) or rule.fp in (UNDEFINED, COMPUTED):
        why = rule.why if isinstance(rule, NoRule) else "no rule"
        raise EncodeError(why)
    return before._replace(ra=UNDEFINED, ra_signed=False) if rule.ra_undefined else rule
