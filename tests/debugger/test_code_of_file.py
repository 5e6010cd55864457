"""The machine code of a module's file, at the addresses of a process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sframe_unwind.arch import BY_NAME
from sframe_unwind.debugger.code_of_file import code_of_files
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.elf import opened
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.unwind.code_match import AskedFrame, ModuleCode
from tests.hanging import HANG
from tests.missing import package_needed, toolchain_needed
from tests.samples.build import build, toolchain

package_needed("pyvex")

AMD64 = BY_NAME["amd64"]
BIAS = 0x10000


@pytest.fixture(scope="module")
def program() -> Path:
    with toolchain_needed():
        return build("free_walk")


def memory(path: Path, changed: int | None = None) -> ReadMemory:
    """Return the memory of a process that has loaded a file.

    :param changed: address in the file of a byte that the process has changed.
    """
    with opened(path) as binary:
        loaded = [(one.address, binary.read(one.offset, one.file_size)) for one in binary.segments if one.type == 1]

    def read(address: int, size: int) -> bytes:
        start = address - BIAS
        for begin, data in loaded:
            if begin <= start and start + size <= begin + len(data):
                found = bytearray(data[start - begin : start - begin + size])
                if changed is not None and start <= changed < start + size:
                    found[changed - start] ^= 0xFF
                return bytes(found)
        raise MemoryReadError(address, size)

    return read


def code(files: list[DebugFile], read: ReadMemory) -> ModuleCode | None:
    return code_of_files(files, lambda: BIAS, AMD64, read)


def function(path: Path, name: str) -> int:
    with opened(path) as binary:
        return next(symbol.address for symbol in binary.symbols if symbol.name == name)


def test_rules_are_at_the_addresses_of_the_process(program: Path) -> None:
    found = code([DebugFile(str(program), "")], memory(program))
    start = function(program, "sample_stop")
    assert found is not None
    match = found.match(start + BIAS)
    assert match is not None
    assert match.function.start == start + BIAS
    assert match.rule == AMD64.call_rule
    assert found.match(start) is None


def test_code_that_the_process_has_changed_does_not_count(program: Path) -> None:
    start = function(program, "sample_stop")
    found = code([DebugFile(str(program), "")], memory(program, changed=start))
    assert found is not None
    assert found.match(start + BIAS) is None
    assert found.match(function(program, "_start") + BIAS) is not None


def test_code_that_cannot_be_read_is_believed(program: Path) -> None:
    """As of a core file without the pages that are equal to the file."""

    def read(address: int, size: int) -> bytes:
        raise MemoryReadError(address, size)

    found = code([DebugFile(str(program), "")], read)
    assert found is not None
    assert found.match(function(program, "sample_stop") + BIAS) is not None


def test_files_that_cannot_be_used(program: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"\x7fELF")
    read = memory(program)
    for path, build_id in ((damaged, ""), (tmp_path / "missing", ""), (program, "0123456789abcdef0123")):
        assert code([DebugFile(str(path), build_id)], read) is None

    def no_bias() -> int:
        raise FormatError("there is no ELF header")

    assert code_of_files([DebugFile(str(program), "")], no_bias, AMD64, read) is None
    assert code_of_files([DebugFile(str(program), "")], lambda: BIAS, BY_NAME["s390x"], read) is None


def test_symbols_of_a_separate_debug_file_name_the_functions(program: Path, tmp_path: Path) -> None:
    objcopy = str(toolchain("amd64", 3) / "objcopy")
    debug, stripped = tmp_path / "debug", tmp_path / "stripped"
    subprocess.run([objcopy, "--only-keep-debug", str(program), str(debug)], check=True, timeout=HANG)
    removed = [part for name in (".eh_frame", ".sframe") for part in ("-R", name)]
    subprocess.run([objcopy, "--strip-all", *removed, str(program), str(stripped)], check=True, timeout=HANG)
    start = function(program, "sample_stop")
    asked = [DebugFile(str(debug), ""), DebugFile(str(stripped), "")]
    both = code(asked, memory(stripped))
    assert both is not None
    match = both.match(start + BIAS)
    assert match is not None
    assert match.function.found_by == "by its symbol"
    alone = code(asked[1:], memory(stripped))
    assert alone is not None
    by_calls = alone.match(start + BIAS)
    assert by_calls is None or by_calls.function.found_by != "by its symbol"


def test_a_frame_that_shows_nothing(program: Path) -> None:
    found = code([DebugFile(str(program), "")], memory(program))
    assert found is not None
    assert found.learn(AskedFrame(BIAS, 0x7000, 0, True, None)) is None
