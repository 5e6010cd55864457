"""Normalises the outputs of `dump` and readelf for comparison."""

from __future__ import annotations

import re


def comparable(text: str) -> str:
    """A dump, or what readelf printed, without what only one of them says.

    readelf pads its lines with blanks at the end and puts blank lines around the whole. The dump adds the ABI, which
    readelf leaves to the file's own header, the length of an auxiliary header, and the repetition size of mask
    functions.
    """
    text = re.sub(r"^    (ABI|Auxiliary header): .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r", repetition = \d+ bytes$", "", text, flags=re.MULTILINE)
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    return text.strip()


def as_in_2_40(text: str) -> str:
    """A dump without what the readelf of binutils 2.40 does not know.

    It does not print the fixed offsets of the header, and where the return address is at such an offset, which is
    everywhere on AMD64, it prints `u` for it as for one in its register.
    """
    fixed = "CFA fixed RA offset" in text
    text = re.sub(r"^    CFA fixed .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" f(?=(\[s\])?$)", " u", text, flags=re.MULTILINE) if fixed else text
