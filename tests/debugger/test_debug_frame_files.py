"""``.debug_frame`` of files, compared with the linker's, objcopy's and pyelftools' results; damaged files."""

from __future__ import annotations

import io
import random
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.debug_frame import placed_by_bias, placed_by_sections
from sframe_unwind.debugger.elf_files import build_id_of, opened_file
from sframe_unwind.elf import ElfBinary, SectionHeader, parsed
from sframe_unwind.errors import SFrameError
from tests.gdb.compiling import SECONDS, tools_for
from tests.samples.catalogue import ABIS

SOURCE = Path(__file__).resolve().parents[1] / "gdb" / "variables.c"
FLAGS = ("-g", "-O2", "-ffunction-sections", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-DINNER_PART")
NAMES = (".debug_frame", ".zdebug_frame")
MACHINES = ("amd64", "aarch64", "s390x")
HIGH = 0x6000_0000_0000


def compiled(folder: Path, abi: str = "amd64", *flags: str) -> Path:
    """Compile an object file with a section for each function."""
    path = folder / "inner.o"
    run(ABIS[abi].compiler, f"-B{tools_for(3, abi)}/", *FLAGS, *flags, "-c", SOURCE, "-o", path)
    return path


def linked(folder: Path, abi: str, *flags: str) -> Path:
    """Link the object file at a high address."""
    path = folder / "linked"
    run(tools_for(3, abi) / "ld", "-e", "0", f"-Ttext-segment={HIGH:#x}", *flags, compiled(folder, abi), "-o", path)
    return path


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, timeout=SECONDS)


def section(path: Path, abi: str = "amd64") -> bytes:
    """Return the contents of `.debug_frame` by the tested code."""
    with opened_file(DebugFile(str(path), ""), BY_NAME[abi]) as binary:
        return binary.contents(frames_of(binary))


def frames_of(binary: ElfBinary) -> SectionHeader:
    return next(one for one in binary.sections if one.name in NAMES)


@pytest.mark.parametrize("abi", MACHINES)
def test_headers_are_those_that_pyelftools_reads(abi: str, tmp_path: Path) -> None:
    path = linked(tmp_path, abi, "--build-id=0x12345678")
    with path.open("rb") as file, opened_file(DebugFile(str(path), ""), BY_NAME[abi]) as binary:
        elf = ELFFile(file)
        expected = [
            (one.name, one["sh_flags"], one["sh_addr"], one["sh_offset"], one["sh_size"]) for one in elf.iter_sections()
        ]
        assert [(one.name, one.flags, one.address, one.offset, one.size) for one in binary.sections] == expected
        assert build_id_of(binary) == "12345678"
        assert not binary.is_object
        for section, one in zip(binary.sections, elf.iter_sections()):
            if one["sh_type"] not in ("SHT_NULL", "SHT_NOBITS"):
                assert binary.contents(section) == one.data()


@pytest.mark.parametrize("abi", MACHINES)
@pytest.mark.parametrize("combined", [False, True], ids=["object", "ld -r"])
def test_item_33_object_file_is_relocated_as_the_linker_does(abi: str, combined: bool, tmp_path: Path) -> None:
    path, final = compiled(tmp_path, abi), linked(tmp_path, abi, "--unique=.text.*")
    if combined:
        run(tools_for(3, abi) / "ld", "-r", path, "-o", tmp_path / "combined.o")
        path = tmp_path / "combined.o"
    with final.open("rb") as file:
        addresses = {one.name: one["sh_addr"] for one in ELFFile(file).iter_sections() if one["sh_flags"] & 2}
    assert {".text.leaf", ".text.middle"} <= addresses.keys()
    with opened_file(DebugFile(str(path), ""), BY_NAME[abi]) as binary:
        assert binary.is_object
        places = [addresses.get(one.name, 0) for one in binary.sections]
        assert binary.relocations_at(places).contents(frames_of(binary)) == section(final, abi)


@pytest.mark.parametrize("how", ["zlib", "zlib-gnu"])
def test_compressed(how: str, tmp_path: Path) -> None:
    path = linked(tmp_path, "amd64")
    plain, compressed = section(path), tmp_path / "compressed"
    # Data that does not become smaller is not compressed, so the section is made larger.
    (tmp_path / "contents").write_bytes(plain * 50)
    run("objcopy", "--update-section", f".debug_frame={tmp_path / 'contents'}", path)
    run(tools_for(3) / "objcopy", f"--compress-debug-sections={how}", path, compressed)
    with opened_file(DebugFile(str(compressed), ""), BY_NAME["amd64"]) as binary:
        assert frames_of(binary).size < len(plain) * 10
    assert section(compressed) == plain * 50


def test_more_sections_than_the_header_can_count(tmp_path: Path) -> None:
    source, path = tmp_path / "many.s", tmp_path / "many.o"
    source.write_text(
        "".join(f".section .s{number}\n" for number in range(66_000)) + '.section .debug_frame\n.ascii "x"'
    )
    run(tools_for(3) / "as", source, "-o", path)
    assert section(path) == b"x"


def test_wrong_or_missing_files_are_left_out(tmp_path: Path) -> None:
    path, arch = linked(tmp_path, "amd64", "--build-id=0x12345678"), BY_NAME["amd64"]
    with opened_file(DebugFile(str(path), ""), arch) as binary:
        text = next(one for one in binary.sections if one.name == ".text")
    moved = {".text": (text.address + 0x5000, text.address + 0x5000 + text.size)}
    (placed,) = placed_by_sections([DebugFile(str(path), "12345678")], arch, moved)
    assert placed.bias == 0x5000
    assert placed.covers(moved[".text"][0])
    assert placed.covers(moved[".text"][1] - 1)
    assert not placed.covers(text.address - 1)
    longer = {".text": (text.address, text.address + text.size + 1)}
    assert not placed_by_sections([DebugFile(str(path), "")], arch, longer)
    assert not placed_by_sections([DebugFile(str(path), "")], arch, {})
    for name, build_id in ((str(path), "87654321"), (str(tmp_path / "missing"), ""), ("target:/lib/x.so", "")):
        assert not placed_by_bias([DebugFile(name, build_id)], arch, 0)
    assert not placed_by_bias([DebugFile(str(SOURCE), "")], arch, 0)
    assert not placed_by_bias([DebugFile(str(path), "")], BY_NAME["s390x"], 0)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path, arch = compiled(tmp_path), BY_NAME["amd64"]
    run(tools_for(3) / "objcopy", "--compress-debug-sections=zlib", path)
    whole = path.read_bytes()
    chance, refused = random.Random(1), 0
    headers = struct.unpack_from("<Q", whole, 40)[0]
    for _ in range(3000):
        data = bytearray(whole)
        first = chance.choice((0, headers, headers, 64))
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(first, len(data) if first else 64)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        del data[chance.choice((len(data), chance.randrange(len(data)))) :]
        try:
            with parsed(io.BytesIO(data), "damaged") as binary:
                frames = binary.relocations_at(()).contents(frames_of(binary))
                CfiSection(SectionData(0, frames), None, arch, debug_frame=True).extents()
        except StopIteration:
            pass  # the section has another name
        except SFrameError:
            refused += 1
    assert refused > 500
