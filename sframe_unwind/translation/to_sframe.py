"""Makes an SFrame table from the rules of other tables."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.errors import EncodeError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FEATURES, MAX_ROWS, AbiNumber, FdeType, Flag, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, TableSpec, fits, usual_table
from sframe_unwind.sframe.encode_rule import info_and_words
from sframe_unwind.translation.changes import Rules
from sframe_unwind.translation.description import Description, Loss
from sframe_unwind.translation.repetition import repetition
from sframe_unwind.unwind_rule import COMPUTED, UNDEFINED, UnwindRule

WRITTEN = (2, 3)
"""The versions that can be written.  Version 2 has start fields as in errata 1."""
_SIZE_BYTES = 4

_Row = tuple[int, tuple[int, ...]]
"""Info byte and data words."""


class Target(NamedTuple):
    """The features that readers of the table accept."""

    version: int
    """One of :data:`WRITTEN`."""
    flexible: bool = True
    """Flexible FDEs may be used (version 3)."""
    outermost_in_flexible: bool = True
    """The rows of a flexible FDE may say that the return address is undefined."""


class Made(NamedTuple):
    """A table, and the functions that it lacks."""

    table: TableSpec
    losses: tuple[Loss, ...]


def make_table(descriptions: Iterable[Description], arch: Arch, target: Target) -> Made:
    """Return the description of a table, sorted and with start fields relative to themselves.

    A function that the table cannot express is left out as a whole: for a missing row, readers would use the row before
    it.
    """
    writer = _Writer(arch, target)
    functions: list[FunctionSpec] = []
    losses: list[Loss] = []
    end = 0
    for description in sorted(descriptions, key=lambda one: (one.start, one.end)):
        try:
            if description.start < end:
                raise EncodeError("overlaps the function before it")
            functions += writer.functions(description)
            end = description.end
        except EncodeError as error:
            losses.append(Loss(description.start, description.end, str(error)))
    return Made(writer.table._replace(functions=tuple(functions)), tuple(losses))


class _Writer:
    """Makes the entries of one table, and encodes each distinct rule once."""

    def __init__(self, arch: Arch, target: Target) -> None:
        abi: AbiNumber = next(number for number, known in ARCH_BY_ABI.items() if known is arch)
        table = usual_table(target.version, abi)
        self.table = table._replace(flags=table.flags | Flag.FDE_FUNC_START_PCREL)
        self._arch = arch
        self._target = target
        self._features = FEATURES[target.version]
        self._rows: dict[tuple[UnwindRule, FdeType], _Row | EncodeError] = {}

    def functions(self, description: Description) -> list[FunctionSpec]:
        """Return the entries for a function; there are two if its rules repeat from some offset on.

        :raises EncodeError: the table cannot express one of its rules.
        """
        if description.signal and not self._features.signal:
            raise EncodeError(f"a signal trampoline, which version {self._target.version} cannot mark")
        size = description.end - description.start
        if not fits(size, _SIZE_BYTES, signed=False):
            raise EncodeError(f"{size:,} bytes long, more than the size field holds")
        found = repetition(description.rules, size) if description.repeats else None
        # A PLT can have a single rule.  Whether the function is a PLT is then known only from its code.
        parts = [(0, size, description.repetition_size)]
        if found is not None:
            parts = [(0, found.offset, 0)] * bool(found.offset) + [(found.offset, size, found.period)]
        return [self._function(description, *part) for part in parts]

    def _function(self, description: Description, low: int, high: int, period: int) -> FunctionSpec:
        """Return the entry for a part of a function.

        :param low: first offset of the part.  ``high`` is the offset after the part.
        :param period: number of bytes after which the rules repeat; 0: they do not.
        """
        rules = _part(description.rules, low, low + period if period else high)
        if len(rules) > MAX_ROWS:
            raise EncodeError(f"{len(rules):,} rows, more than {MAX_ROWS:,}")
        rows, kind = self._encoded(rules, low)
        return FunctionSpec(
            description.start + low,
            high - low,
            rows,
            pc_type=PcType.MASK if period else PcType.INC,
            repetition_size=period,
            fde_type=kind,
            pauth_key=description.pauth_key,
            signal=description.signal,
        )

    def _encoded(self, rules: list[tuple[int, Said]], low: int) -> tuple[tuple[RowSpec, ...], FdeType]:
        """Return the rows for rules, and the type of FDE that they take.

        :param low: first offset of the part, for messages.
        :raises EncodeError: neither type can express all rules.
        """
        for _, rule in rules:
            self._check(rule)
        checked = [(offset, rule) for offset, rule in rules if isinstance(rule, UnwindRule)]
        try:
            return self._rows_of(checked, FdeType.DEFAULT, low), FdeType.DEFAULT
        except EncodeError as error:
            if not self._features.flexible:
                raise
            if not self._target.flexible:
                raise EncodeError(f"{error}; it takes flexible rows") from None
        if not self._target.outermost_in_flexible and any(rule.ra_undefined for _, rule in checked):
            raise EncodeError("the return address is undefined in one row, and another takes flexible rows")
        return self._rows_of(checked, FdeType.FLEX, low), FdeType.FLEX

    def _check(self, rule: Said) -> None:
        """Check for rules that rows of no type can express.

        :raises EncodeError: a rule cannot be expressed.
        """
        if isinstance(rule, NoRule):
            raise EncodeError(rule.why)
        fp = self._arch.register_name(self._arch.fp)
        if rule.fp == UNDEFINED:
            raise EncodeError(f"{fp} cannot be restored")
        if rule.fp == COMPUTED:
            raise EncodeError(f"{fp} is computed by an expression")
        if rule.ra_undefined and not self._features.undefined_ra:
            raise EncodeError(f"the return address is undefined, for which version {self._target.version} has no row")

    def _rows_of(self, rules: list[tuple[int, UnwindRule]], kind: FdeType, low: int) -> tuple[RowSpec, ...]:
        rows = []
        for offset, rule in rules:
            encoded = self._rows.get((rule, kind)) or self._encode(rule, kind)
            if isinstance(encoded, EncodeError):
                raise EncodeError(f"at +{low + offset:#x}: {encoded}")
            rows.append(RowSpec(offset, *encoded))
        return tuple(rows)

    def _encode(self, rule: UnwindRule, kind: FdeType) -> _Row | EncodeError:
        encoded: _Row | EncodeError
        try:
            encoded = info_and_words(self.table, rule, kind)
        except EncodeError as error:
            encoded = error
        self._rows[rule, kind] = encoded
        return encoded


def _part(rules: Rules, low: int, high: int) -> list[tuple[int, Said]]:
    """Return the rules for ``[low, high)``, with offsets from ``low``.

    :raises EncodeError: bytes after the first byte with a rule have none.
    """
    offsets, said = rules
    first, last = bisect_left(offsets, low), bisect_left(offsets, high)
    part = []
    for offset, rule in zip(offsets[first:last], said[first:last]):
        if rule is not None:
            part.append((offset - low, rule))
        elif part:
            raise EncodeError(f"no rule at +{offset:#x}")
    return part
