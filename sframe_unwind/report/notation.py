"""Formats rows and functions in the notation of ``readelf --sframe`` (binutils 2.47), and rules as English sentences.

The notation shows the contents of the section and is made from the bytes of a row.  The sentences are made from the
rule.

=================  ===================================================================================
``sp+16``          the register plus the offset: ``sp``, ``fp``, or ``rN`` for any other DWARF register
``c-16``           saved in memory at CFA - 16
``(fp-16)``        in memory at ``fp-16`` (flexible rows)
``u``              no data word: unchanged (FP), still in its register (RA)
``f``              no data word: saved at the fixed offset of the header
``U``              a padding data word: not tracked
``[s]``            after RA: the return address is signed
``RA undefined``   no data words: the outermost frame
=================  ===================================================================================
"""

from __future__ import annotations

from sframe_unwind import unwind_rule
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe import default_row, fre
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FdeType, PauthKey, PcType
from sframe_unwind.sframe.fde import Fde
from sframe_unwind.sframe.header import Header
from sframe_unwind.sframe.row_context import cfa_offset
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

RA_UNDEFINED = "RA undefined"
SIGNED = "[s]"

_REGISTER, _IN_MEMORY = 0x1, 0x2


class Cells(NamedTuple):
    """The three columns of a row."""

    cfa: str
    """Empty if the return address is undefined."""
    fp: str
    """Empty if the return address is undefined."""
    ra: str
    """Includes ``[s]`` if the return address is signed; ``RA undefined``."""

    @property
    def ra_signed(self) -> bool:
        """Whether the return address is signed."""
        return self.ra.endswith(SIGNED)

    @property
    def ra_undefined(self) -> bool:
        """Whether this is the row of an outermost frame."""
        return self.ra == RA_UNDEFINED

    def __str__(self) -> str:
        return self.ra if self.ra_undefined else f"{self.cfa:<9} {self.fp:<9} {self.ra}"


UNDEFINED = Cells("", "", RA_UNDEFINED)


def cells(header: Header, fde_type: FdeType, row: bytes) -> Cells:
    """Return the columns of a row.

    :param row: info byte and data words (see :meth:`sframe_unwind.sframe.table.Table.raw_rows`).
    :raises FormatError: a flexible row ends between a control word and its offset.
    """
    words = fre.words(row, header.byteorder)
    if not words:
        return UNDEFINED
    arch = ARCH_BY_ABI[header.abi]
    if fde_type is FdeType.FLEX:
        cfa, fp, ra = _flexible(header, arch, fre.word_size(row[0]), words)
    else:
        cfa, fp, ra = _default(header, arch, fre.base_is_sp(row[0]), words)
    return Cells(cfa, fp, ra + SIGNED if fre.ra_signed(row[0]) else ra)


def cells_of(match: Match) -> Cells:
    """Return the columns of the row that a lookup found.

    :raises FormatError: as for :func:`cells`.
    """
    function = match.function
    row = next(raw for start, raw in reversed(function.table.raw_rows(function)) if start == match.row_start)
    return cells(function.table.header, function.fde.fde_type, row)


def attributes(fde: Fde) -> str:
    """Return the attributes of a function as readelf prints them, such as ``, attr = "SF", pauth = B key``."""
    letters = "S" * fde.signal + "F" * (fde.fde_type is FdeType.FLEX)
    return (f', attr = "{letters}"' if letters else "") + (", pauth = B key" if fde.pauth_key is PauthKey.B else "")


def start_column(fde: Fde) -> str:
    """Return the title of the column of start addresses.  In a mask FDE, they are offsets."""
    return "STARTPC[m]" if fde.pc_type is PcType.MASK else "STARTPC"


def _default(header: Header, arch: Arch, base_is_sp: bool, words: tuple[int, ...]) -> tuple[str, str, str]:
    cfa = f"{'sp' if base_is_sp else 'fp'}+{cfa_offset(arch, words[0])}"
    tracked = words[1:]
    ra = "f" if header.fixed_ra_offset else "u"
    if arch.ra is not None and tracked:
        ra = _saved(header, tracked[0]) if tracked[0] else "U"
        tracked = tracked[1:]
    fixed_fp = f"c{header.fixed_fp_offset:+d}" if header.fixed_fp_offset else "u"
    return cfa, _saved(header, tracked[0]) if tracked else fixed_fp, ra


def _saved(header: Header, word: int) -> str:
    register = default_row.saved_register(header, word)
    return f"c{word:+d}" if register is None else f"r{register}"


def _flexible(header: Header, arch: Arch, word_size: int, words: tuple[int, ...]) -> tuple[str, str, str]:
    mask = (1 << 8 * word_size) - 1
    columns: list[str | None] = []
    rest = list(words)
    while len(columns) < 3:
        if not rest:
            columns.append(None)
            continue
        control = rest.pop(0) & mask
        if columns and not control:
            columns.append("U")
            continue
        if not rest:
            raise FormatError(f"flexible row ends after control word {control:#x}, expected its offset")
        offset = rest.pop(0)
        columns.append(_column(arch, control, offset if columns else cfa_offset(arch, offset)))
    cfa, ra, fp = columns
    # readelf prints U for RA only: there the padding precedes the words of FP.
    return cfa or "", "u" if fp in (None, "U") else fp or "", ra or ("f" if header.fixed_ra_offset else "u")


def _column(arch: Arch, control: int, offset: int) -> str:
    if not control & _REGISTER:
        return f"c{offset:+d}"
    number = control >> 3
    name = {arch.sp: "sp", arch.fp: "fp"}.get(number, f"r{number}")
    return f"({name}{offset:+d})" if control & _IN_MEMORY else f"{name}{offset:+d}"


class Notations(dict[bytes, Cells]):
    """Maps the bytes of a row to its columns, for the FDEs of one type under one header; computed on first access."""

    def __init__(self, header: Header, fde_type: FdeType) -> None:
        super().__init__()
        self._header = header
        self._fde_type = fde_type

    def __missing__(self, row: bytes) -> Cells:
        found = self[row] = cells(self._header, self._fde_type, row)
        return found


def describe_rule(rule: UnwindRule, arch: Arch, key: PauthKey | None = None) -> list[str]:
    """Return a rule as sentences, one for each value, with the debuggers' names of registers.

    :param key: the key that signs the return addresses of the function; ``None``: do not mention it.
    """
    if rule.cfa is None:
        return ["return address undefined: the outermost frame"]
    sentences = [f"CFA {'in memory at' if rule.cfa.in_memory else '='} {_sum(arch, rule.cfa)}"]
    if rule.ra is not None:
        sentences.append(f"return address {_where(arch, rule.ra)}")
    elif arch.ra is not None:
        sentences.append(f"return address still in {arch.register_name(arch.ra)}")
    else:
        sentences.append("return address not known")
    if rule.ra_signed:
        sentences.append("return address signed" + (f" with key {key.name}" if key is not None else ""))
    fp = arch.register_name(arch.fp)
    sentences.append(f"{fp} unchanged" if rule.fp is None else f"{fp} {_where(arch, rule.fp)}")
    if arch.sp_from_cfa:
        sentences.append(
            f"caller's {arch.register_name(arch.sp)} = {_sum(arch, RegisterRule(CFA, arch.sp_from_cfa, False))}"
        )
    return sentences


_WITHOUT_VALUE = {unwind_rule.UNDEFINED: "undefined", unwind_rule.COMPUTED: "computed"}


def describe_register_rule(rule: RegisterRule, arch: Arch) -> str:
    """Return a register rule as text, such as ``rsp + 16`` or ``in memory at CFA - 8``."""
    if rule in _WITHOUT_VALUE:
        return _WITHOUT_VALUE[rule]
    return f"in memory at {_sum(arch, rule)}" if rule.in_memory else _sum(arch, rule)


def _where(arch: Arch, rule: RegisterRule) -> str:
    if rule.in_memory:
        return f"in memory at {_sum(arch, rule)}"
    return f"in {_sum(arch, rule)}" if rule.base != CFA and not rule.offset else f"= {_sum(arch, rule)}"


def _sum(arch: Arch, rule: RegisterRule) -> str:
    base = "CFA" if rule.base == CFA else arch.register_name(rule.base)
    if not rule.offset:
        return base
    return f"{base} {'-' if rule.offset < 0 else '+'} {abs(rule.offset)}"
