"""The rules for the data words of a row.  A program has a few dozen distinct rows, and each is judged once."""

from __future__ import annotations

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import Rule
from sframe_unwind.lint.reading import TableReading
from sframe_unwind.sframe import fre, raw
from sframe_unwind.sframe.constants import ARCH_BY_ABI, FdeType
from sframe_unwind.sframe.rules import RuleTable

Facts = tuple[tuple[Rule, str], ...]
"""The rules that a row breaks, and the details."""

_REGISTER = 0x1
"""The bit of a control word that marks the base as a register."""

_MOST_WORDS = {FdeType.DEFAULT: 3, FdeType.FLEX: 6}
"""Maximum numbers of data words: CFA, RA and FP, of two data words each in a flexible row."""


class RowRules:
    """Finds the rules that the rows of a table break."""

    def __init__(self, table: TableReading) -> None:
        self._header = table.header
        self._arch = ARCH_BY_ABI.get(table.header.abi)
        self._rules = {kind: RuleTable(table.header, kind) for kind in FdeType}
        self._known: dict[tuple[int, bytes], Facts] = {}

    def broken(self, fde_type: int, row: bytes) -> Facts:
        """Return the rules that a row breaks.

        :param fde_type: type of its FDE; rows of an unknown type are not judged.
        :param row: info byte and data words.
        """
        key = fde_type, row
        facts = self._known.get(key)
        if facts is None:
            facts = self._known[key] = tuple(self._judge(fde_type, row))
        return facts

    def _judge(self, fde_type: int, row: bytes) -> list[tuple[Rule, str]]:
        info = row[0]
        if raw.WORDS_SIZE[info] == raw.INVALID_SIZE:
            return [(c.ROW_WORD_SIZE, f"info byte {info:#x}: data words of the invalid size 3")]
        if fde_type not in (FdeType.DEFAULT, FdeType.FLEX):
            return []
        words = fre.words(row, self._header.byteorder)
        most = _MOST_WORDS[FdeType(fde_type)]
        if len(words) > most:
            many = [(c.ROW_WORDS_MANY, f"{len(words)} data words, expected at most {most}")]
            return many + self._judge_words(fde_type, row, words)
        return self._judge_words(fde_type, row, words)

    def _judge_words(self, fde_type: int, row: bytes, words: tuple[int, ...]) -> list[tuple[Rule, str]]:
        if not words:
            facts = [(c.OUTERMOST, "no data words: the return address is undefined")]
            return facts if fde_type == FdeType.DEFAULT else facts + _flexible_words([])
        if fde_type == FdeType.FLEX:
            mask = (1 << 8 * fre.word_size(row[0])) - 1
            facts = _flexible_words([word & mask for word in words])
        else:
            facts = self._default_words(words)
        return facts + self._meaning(FdeType(fde_type), row)

    def _default_words(self, words: tuple[int, ...]) -> list[tuple[Rule, str]]:
        usable = 1 + (not self._header.fixed_ra_offset) + (not self._header.fixed_fp_offset)
        if len(words) <= usable:
            return []
        return [
            (c.WORDS_LEFT_OVER, f"{counted(len(words), 'data word')}, {usable} can be used with these fixed offsets")
        ]

    def _meaning(self, fde_type: FdeType, row: bytes) -> list[tuple[Rule, str]]:
        if self._arch is None:
            return []
        try:
            cfa = self._rules[fde_type][row].cfa
        except FormatError as error:
            return [(c.ROW_UNDEFINED, error.what)]
        return [] if cfa is None or cfa.in_memory else _alignment(self._arch, cfa.base, cfa.offset)


def _alignment(arch: Arch, base: int, offset: int) -> list[tuple[Rule, str]]:
    """Return the rules that a CFA breaks, given as a register plus an offset in bytes."""
    # If calls push nothing, SP is aligned at every instruction, and so are CFA and frame pointer.
    unit = WORD_SIZE if arch.ra is None else arch.stack_alignment
    if base not in (arch.sp, arch.fp) or not offset % unit:
        return []
    place = f"{arch.register_name(base)}{offset:+}"
    return [(c.CFA_ALIGNMENT, f"CFA at {place}, expected a multiple of {unit}")]


def _flexible_words(words: list[int]) -> list[tuple[Rule, str]]:
    """Return the rules that the words of a flexible row break, as Linux reads them.

    RA and FP each take a control word and an offset, or only a control word 0; but a single last word is left over.
    """
    if len(words) < 2:
        return [(c.WORDS_MISSING, f"a flexible row with {counted(len(words), 'data word')}, expected two or more")]
    facts: list[tuple[Rule, str]] = []
    if not words[0] & _REGISTER:
        facts.append((c.CFA_NOT_REGISTER, f"control word {words[0]:#x} of the CFA names no register"))
    rest = words[2:]
    for _ in ("RA", "FP"):
        if len(rest) >= 2:
            rest = rest[2:] if rest[0] else rest[1:]
    if rest:
        facts.append((c.WORDS_LEFT_OVER, f"{len(rest)} of {len(words)} data words left over"))
    return facts
