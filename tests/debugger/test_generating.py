"""SFrame that is generated from the CFI of a module, and the folder in which it is cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.debugger import generated_cache
from sframe_unwind.debugger.generating import generator
from sframe_unwind.elf.constants import PF_X, PT_LOAD
from sframe_unwind.errors import FormatError
from sframe_unwind.translation import generate
from sframe_unwind.unwind.modules import Found, Module, Modules
from tests.samples.build import build
from tests.samples.catalogue import ABIS

BIAS = 0x7F12_3456_7000
BUILD_ID = "0123456789abcdef"


def module(path: Path, bias: int = BIAS, build_id: str = BUILD_ID) -> Module:
    """Return a loaded program without SFrame."""
    with elf.opened(path) as binary:
        arch = binary.arch
        section = binary.named(".eh_frame")
        assert section is not None
        frames = SectionData(section.address + bias, binary.contents(section))
        ranges = [
            (segment.address + bias, segment.address + bias + segment.memory_size)
            for segment in binary.segments
            if segment.type == PT_LOAD and segment.flags & PF_X
        ]
    return Module(
        name=path.name,
        ranges=ranges,
        load=lambda: None,
        load_cfi=lambda: CfiSection(frames, None, arch),
        code_size=None,
        load_build_id=lambda: build_id,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sframe-unwind"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets one entry for each section that is made."""
    made: list[int] = []
    real = generate.generate

    def counting(*arguments: object) -> bytes:
        made.append(1)
        return real(*arguments)  # type: ignore[arg-type]  # those that it was called with

    monkeypatch.setattr(generate, "generate", counting)
    return made


@pytest.mark.parametrize("abi", [name for name, abi in ABIS.items() if abi.has_libc])
def test_every_rule_of_the_cfi_is_there(folder: Path, abi: str) -> None:
    loaded = module(build("callback", abi, 3))
    modules = Modules(BY_NAME[abi], [loaded], generate=generator(BY_NAME[abi]))
    assert loaded.section is not None
    assert loaded.is_generated
    assert loaded.cfi is not None
    compared = 0
    for start, end, _ in loaded.cfi.extents():
        for pc in range(start, end):
            found = modules.results[pc]
            assert isinstance(found, Found)
            assert modules.cfi_agrees(pc, found.rule), hex(pc)
            compared += 1
    assert compared > 100
    assert [path.name for path in folder.iterdir()] == [f"{BUILD_ID}.sframe"]


def test_a_module_with_sframe_keeps_it(folder: Path) -> None:
    own = elf.load(build("callback", "amd64", 3))[0]
    loaded = Module("program", [(0x1000, 0x2000)], lambda: own)
    Modules(BY_NAME["amd64"], [loaded], generate=generator(BY_NAME["amd64"]))
    assert loaded.section is own
    assert not loaded.is_generated
    bare = Module("program", [(0x1000, 0x2000)], lambda: None)
    Modules(BY_NAME["amd64"], [bare], generate=generator(BY_NAME["amd64"]))
    assert bare.section is None
    assert not folder.exists()


def test_it_is_made_once_for_a_build_id(folder: Path, calls: list[int]) -> None:
    path = build("callback", "amd64", 3)
    make = generator(BY_NAME["amd64"])
    first, again = make(module(path)), make(module(path, BIAS + 0x5000))
    assert first is not None
    assert again is not None
    assert [one.start + 0x5000 for one in first.functions()] == [one.start for one in again.functions()]
    assert calls == [1]
    make(module(path, build_id="fedcba"))
    assert calls == [1, 1]
    make(module(path, build_id=""))
    make(module(path, build_id=""))
    assert calls == [1] * 4
    assert len(list(folder.iterdir())) == 2


def _flip(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1
    path.write_bytes(contents)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _of_another_format(path: Path) -> None:
    rest = path.read_bytes()[32:].replace(b"sframe-unwind 1 ", b"sframe-unwind 0 ")
    path.write_bytes(hashlib.sha256(rest).digest() + rest)


def _of_other_code(path: Path) -> None:
    """Write a complete file for this build ID, whose functions are not in the module."""
    data = generated_cache.load(path.stem, f"amd64 {BUILD_ID}")
    assert data is not None
    moved = bytearray(data)
    moved[28] ^= 0x80  # the first start field, in its lowest byte and in a high one
    moved[33] ^= 0x40
    generated_cache.save(path.stem, f"amd64 {BUILD_ID}", bytes(moved))


@pytest.mark.parametrize("damage", [_flip, _cut, _link, _fifo, _of_another_format, _of_other_code])
def test_what_is_damaged_is_made_anew(folder: Path, calls: list[int], damage: Callable[[Path], None]) -> None:
    path = build("callback", "amd64", 3)
    make = generator(BY_NAME["amd64"])
    first = make(module(path))
    damage(folder / f"{BUILD_ID}.sframe")
    again = make(module(path))
    assert calls == [1, 1]
    assert first is not None
    assert again is not None
    assert [one.rows() for one in again.functions()] == [one.rows() for one in first.functions()]
    make(module(path))
    assert calls == [1, 1]


def test_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[int]) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    make = generator(BY_NAME["amd64"])
    assert make(module(build("callback", "amd64", 3))) is not None
    assert calls == [1]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert generated_cache.folder() == Path("/home/somebody/.cache/sframe-unwind")


@pytest.mark.usefixtures("folder")
def test_cfi_that_is_damaged_is_an_error_of_the_module() -> None:
    frames = SectionData(0x3000, b"\xff\0\0\0" + bytes(60))
    arch = BY_NAME["amd64"]
    loaded = Module("program", [(0x1000, 0x2000)], lambda: None, lambda: CfiSection(frames, None, arch))
    Modules(arch, [loaded], generate=generator(arch))
    assert loaded.section is None
    assert isinstance(loaded.error, FormatError)
