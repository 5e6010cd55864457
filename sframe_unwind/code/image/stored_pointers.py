"""Finds the addresses of code that the data of a file holds: functions in tables of handlers, and labels."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.code.image.code_image import CodeImage, CodeSection

_MOST_BYTES = 1 << 23
"""Maximum number of bytes of data that are searched, which takes 0.1 s."""


def stored_pointers(image: CodeImage) -> Sequence[int]:
    """Return the addresses of code in aligned words of data, in relocations and of exported functions, ascending.

    Numbers that only look like addresses of code are among them.
    """
    found = set(image.reachable)
    left, code = _MOST_BYTES, image.code_extents()
    for section in image.data_sections():
        words = _words(section, min(len(section.contents), left), image.byteorder)
        left -= WORD_SIZE * len(words)
        for start, end in code:
            found.update(word for word in words if start <= word < end)
    return array("Q", sorted(found))


def _words(section: CodeSection, size: int, byteorder: str) -> array[int]:
    skipped = -section.start % WORD_SIZE
    words = array("Q")
    words.frombytes(section.contents[skipped : skipped + max(size - skipped, 0) // WORD_SIZE * WORD_SIZE])
    if byteorder != sys.byteorder:
        words.byteswap()
    return words
