"""The bytes that fill the space between two functions, and the places where a file has them."""

from __future__ import annotations

import pytest

from sframe_unwind import elf
from sframe_unwind.arch import Arch, aarch64, amd64, s390x
from sframe_unwind.elf import ElfBinary
from tests.samples.build import build


@pytest.mark.parametrize(
    ("arch", "padding", "code"),
    [
        (amd64.ARCH, "90 6690 662e0f1f840000000000 0f1f4000 cccc", "c3"),
        (aarch64.LITTLE, "1f2003d5 00000000", "c0035fd6"),
        (s390x.ARCH, "0707 0700 47000000 c00400000000", "07fe"),
    ],
)
def test_padding(arch: Arch, padding: str, code: str) -> None:
    assert arch.padding.fullmatch(bytes.fromhex(padding))
    assert not arch.padding.fullmatch(bytes.fromhex(code + padding))
    assert not arch.padding.fullmatch(bytes.fromhex(padding + code))


def test_padding_of_a_file() -> None:
    with elf.opened(build("callback", "amd64", 3, "O2")) as binary:
        assert isinstance(binary, ElfBinary)
        (start, end) = next(extent for extent in binary.layout.code if extent[1] - extent[0] > 64)
        assert binary.padding.fills(start + 1, start + 1)
        assert not binary.padding.fills(start, start)  # the byte before is of another section
        assert not binary.padding.fills(start, end - 1)  # code
        assert not binary.padding.fills(end, end)  # the next section begins there
        assert not binary.padding.fills(start, start - 1)
        assert not binary.padding.fills(0, 0)
