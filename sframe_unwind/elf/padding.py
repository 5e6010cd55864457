"""Recognises the padding between functions."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.elf.contents import Reader

_MOST = 4096
"""Maximum size of the padding between two functions in bytes: one page."""


class Padding:
    """Distinguishes padding from code and data.

    :param addresses: addresses of the sections, by section number.
    :param pattern: matches padding.
    :raises FileError: a section with code cannot be read.
    """

    def __init__(self, reader: Reader, addresses: Sequence[int], pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        sections = (one for one in reader.sections if one.flags & SHF_EXECINSTR and one.has_contents)
        self._code = sorted((addresses[one.number], reader.contents(one)) for one in sections)
        self._starts = [address for address, _ in self._code]

    def fills(self, start: int, end: int) -> bool:
        """Return whether there is only padding between two functions of the same section of code.

        :param start: address after the last byte of the first function.
        :param end: start address of the second function.
        """
        at = bisect_left(self._starts, start) - 1  # the section of the byte before: another may begin at start
        if at < 0 or not 0 <= end - start <= _MOST:
            return False
        address, data = self._code[at]
        # At the end of the section, another one begins.
        return end < address + len(data) and self._pattern.fullmatch(data, start - address, end - address) is not None
