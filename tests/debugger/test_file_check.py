"""Whether a plugin has anything to do for a file, compared with the sections that readelf and objcopy know."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.debugger.file_check import is_of_use, may_have_symbol
from tests.elf.objects import run, tools_for
from tests.missing import toolchain_needed

SOURCE = "int answer(int n) { return n + 1; }\nint main(void) { return answer(1); }\n"


def _built(folder: Path, *flags: str) -> Path:
    source, result = folder / "source.c", folder / "built"
    source.write_text(SOURCE, encoding="utf-8")
    with toolchain_needed():
        run("gcc", f"-B{tools_for('amd64', 3)}/", *flags, source, "-o", result)
    return result


@pytest.mark.parametrize("flags", [(), ("-c",), ("-shared", "-fPIC")], ids=["program", "object", "library"])
@pytest.mark.parametrize("sframe", [True, False])
def test_a_file_has_sframe_or_not(flags: tuple[str, ...], sframe: bool, tmp_path: Path) -> None:
    built = _built(tmp_path, *flags, "-Wa,--gsframe" if sframe else "-g")
    assert is_of_use(str(built)) is sframe


@pytest.mark.parametrize("name", ["__ksymtab", ".orc_unwind"])
def test_a_kernel_is_of_use(name: str, tmp_path: Path) -> None:
    built = _built(tmp_path)
    run("objcopy", f"--add-section={name}={tmp_path / 'source.c'}", built)
    assert is_of_use(str(built)) is True


def test_a_program_that_registers_code(tmp_path: Path) -> None:
    source = tmp_path / "source.c"
    built = _built(tmp_path)
    source.write_text("void _U_dyn_register(void *);\nvoid f(void *p) { _U_dyn_register(p); }\n", encoding="utf-8")
    run("gcc", "-shared", "-fPIC", source, "-o", tmp_path / "registers.so")
    run("gcc", "-shared", "-fPIC", source, "-o", tmp_path / "libunwind.so")
    assert is_of_use(str(tmp_path / "registers.so")) is True
    assert is_of_use(str(tmp_path / "libunwind.so")) is False
    assert is_of_use(str(built)) is False


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    built = _built(tmp_path)
    assert is_of_use(str(built)) is False
    built.unlink()
    assert is_of_use(str(_built(tmp_path, "-Wa,--gsframe"))) is True


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02" + bytes(59), b"\x7fELF\x02\x01" + b"\xff" * 90])
def test_damaged_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(content)
    assert is_of_use(str(path)) is False


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert is_of_use(str(tmp_path / "absent")) is None
    assert is_of_use("with\0nul") is None


def test_symbols_that_a_file_may_have(tmp_path: Path) -> None:
    built = _built(tmp_path)
    assert may_have_symbol(str(built), "answer")
    assert not may_have_symbol(str(built), "question")
    run("strip", built)
    assert not may_have_symbol(str(built), "answer")
    run("objcopy", f"--add-section=.gnu_debugdata={tmp_path / 'source.c'}", built)
    assert may_have_symbol(str(built), "answer")
    assert may_have_symbol(str(tmp_path / "absent"), "answer")
