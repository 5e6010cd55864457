"""Normalises the outputs of `dump` and readelf for comparison."""

from __future__ import annotations

import re


def comparable(text: str) -> str:
    """Return a dump, or the output of readelf, without the parts that only one of them has.

    readelf pads its lines with blanks and puts blank lines around the whole output.  The dump adds the ABI, which
    readelf leaves to the file's own header, the length of an auxiliary header, and the repetition size of mask
    functions.
    """
    text = re.sub(r"^    (ABI|Auxiliary header): .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r", repetition = \d+ bytes$", "", text, flags=re.MULTILINE)
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    return text.strip()


def as_in_2_40(text: str) -> str:
    """Return a dump without the parts that readelf of binutils 2.40 does not know.

    It does not print the fixed offsets of the header.  If the return address is at such an offset, which is always so
    on AMD64, it prints `u`, as for one in its register.
    """
    fixed = "CFA fixed RA offset" in text
    text = re.sub(r"^    CFA fixed .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" f(?=(\[s\])?$)", " u", text, flags=re.MULTILINE) if fixed else text
