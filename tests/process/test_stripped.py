"""Names of functions where the symbol table is not at the path: in `.gnu_debugdata`, deleted files, in memory."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sframe_unwind import decompression, elf
from sframe_unwind.elf import mini_debug_info
from sframe_unwind.elf.mini_debug_info import embedded_file
from sframe_unwind.elf.symbols import Symbols, _decode
from sframe_unwind.errors import FileError
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.process.dynamic_symbols import dynamic_symbols
from tests.missing import mapped_files_needed
from tests.process.command import NOWHERE, backtrace, functions
from tests.process.programs import SECONDS, compiled, running

SECTION = ".gnu_debugdata"


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=SECONDS)
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a program with symbols."""
    return compiled("odd.c", tmp_path_factory.mktemp("stripped"))


def stripped(program: Path, target: Path, content: bytes | None = None) -> Path:
    """Copy a program without its symbol table, and as Fedora does, with the local functions in `.gnu_debugdata`.

    :param content: of that section; ``None``: the symbols.
    """
    functions_only = target.with_suffix(".mini")
    run("objcopy", "--only-keep-debug", program, functions_only)
    data = target.with_suffix(".xz")
    data.write_bytes(lzma.compress(functions_only.read_bytes()) if content is None else content)
    run("objcopy", "--strip-all", "--add-section", f"{SECTION}={data}", program, target)
    return target


def names(path: Path) -> set[tuple[int, str]]:
    with elf.opened(path) as binary:
        return {(symbol.address, symbol.name) for symbol in binary.symbols}


def test_names_are_those_of_the_symbol_table(program: Path, tmp_path: Path) -> None:
    mini = stripped(program, tmp_path / "mini")
    assert ".symtab" not in run("readelf", "-SW", mini)
    assert names(program) <= names(mini)
    assert {name for _, name in names(mini)} >= {"clobber", "main"}


@pytest.mark.parametrize("damage", ["cut", "no xz", "another file"])
def test_damaged_data_leaves_the_dynamic_symbols(damage: str, program: Path, tmp_path: Path) -> None:
    content = {
        "cut": lzma.compress(program.read_bytes())[:-40],
        "no xz": b"no xz at all",
        "another file": lzma.compress(b"not an ELF file"),
    }[damage]
    bare = tmp_path / "bare"
    run("strip", program, "-o", bare)
    assert names(stripped(program, tmp_path / "mini", content)) == names(bare)


def test_what_decompresses_to_too_much_is_refused(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_debug_info, "_MAX_SIZE", 1 << 20)
    bomb = stripped(program, tmp_path / "mini", lzma.compress(bytes(1 << 21)))
    with elf.opened(bomb) as binary, pytest.raises(FileError, match="more than 1,048,576 bytes"):
        embedded_file(binary)
    monkeypatch.setattr(decompression, "_MAX_DICTIONARY", 1 << 10)
    with elf.opened(bomb) as binary, pytest.raises(FileError, match="cannot be decompressed"):
        embedded_file(binary)


@pytest.fixture(scope="module")
def with_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with a program that waits in a local function of a library in the same folder."""
    folder: Path = tmp_path_factory.mktemp("library")
    library = folder / "libdeep.so"
    compiled("deep.c", folder, "-shared", "-fPIC", "-Wl,-soname,libdeep.so").rename(library)
    compiled("calls_deep.c", folder, "-Wl,--no-as-needed", str(library), "-Wl,-rpath,$ORIGIN")
    return folder


def copy_of(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target.joinpath("calls_deep")


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_library_that_is_gone_since(change: str, with_library: Path, program: Path, tmp_path: Path) -> None:
    mapped_files_needed()
    waiting = copy_of(with_library, tmp_path / "copy")
    library = waiting.with_name("libdeep.so")
    with running(waiting) as process:
        expected = backtrace("--pid", str(process), "--json", *NOWHERE)
        if change == "deleted":
            library.unlink()
        else:
            shutil.copy(program, tmp_path / "new")
            (tmp_path / "new").rename(library)
        found = backtrace("--pid", str(process), "--json", *NOWHERE)
    stack = functions(expected.threads[str(process)])
    assert stack[stack.index("inner") :][:3] == ["inner", "outer", "main"]
    assert (found.status, found.errors) == (0, "")
    assert found.threads == expected.threads


def test_symbols_in_memory(with_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without access to `map_files`, names come from the dynamic symbols in memory."""
    waiting = copy_of(with_library, tmp_path / "copy")
    with running(waiting) as process:
        waiting.with_name("libdeep.so").unlink()
        monkeypatch.setattr("sframe_unwind.process.live._MAP_FILES", "/nonexistent/{}")
        found = backtrace("--pid", str(process), "--json", *NOWHERE)
    stack = functions(found.threads[str(process)])
    assert stack[stack.index("outer") :][:2] == ["outer", "main"]


def test_symbols_in_memory_are_those_of_the_file() -> None:
    """The dynamic symbols of the C library in this process, compared with those of its file."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    path, base = next(
        (line.split()[-1], int(line.split("-")[0], 16))
        for line in maps.splitlines()
        if "/libc.so" in line and line.split()[2] == "00000000"
    )
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:

        def read(address: int, size: int) -> bytes:
            return os.pread(memory.fileno(), size, address)

        found = dynamic_symbols(read_image(read, base), read, "little")
    with elf.opened(path) as binary:
        assert set(found) == {symbol._replace(limit=1 << 64) for symbol in symbols_of_table(binary)}


def symbols_of_table(binary: elf.ElfBinary) -> Symbols:
    (table,) = (section for section in binary.sections if section.name == ".dynsym")
    return Symbols(_decode(binary, table, binary.layout))
