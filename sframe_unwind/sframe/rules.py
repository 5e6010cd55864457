"""Converts the bytes of a row to its rule, and keeps the rule of each distinct row."""

from __future__ import annotations

from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import default_row, flex_row, fre
from sframe_unwind.sframe.constants import FdeType
from sframe_unwind.sframe.header import Header
from sframe_unwind.unwind_rule import OUTERMOST, UnwindRule


class RuleTable(dict[bytes, UnwindRule]):
    """Maps the bytes of a row (info byte and data words) to its rule, for the FDEs of one type under one header.

    A program of 20,000 functions has a few dozen distinct rows, so the table decodes each row once and shares the rule.

    :param offset: section offset of the header, in bytes.
    """

    def __init__(self, header: Header, fde_type: FdeType, offset: int = 0) -> None:
        super().__init__()
        self._header = header
        self._offset = offset
        self._flexible = fde_type is FdeType.FLEX

    def __missing__(self, row: bytes) -> UnwindRule:
        info = row[0]
        words = fre.words(row, self._header.byteorder)
        if not words:
            rule = OUTERMOST
        elif self._flexible:
            rule = flex_row.to_rule(self._header, fre.word_size(info), words)
        else:
            try:
                rule = default_row.to_rule(self._header, fre.base_is_sp(info), words)
            except FormatError as error:
                raise error.moved(self._offset) from None
        if fre.ra_signed(info) and words:
            rule = rule._replace(ra_signed=True)
        self[row] = rule
        return rule
