"""Whether a plugin has anything to do for a file, compared with the sections that readelf and objcopy know."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sframe_unwind.debugger.file_check import has_use, may_have_symbol
from sframe_unwind.debugger.of_use import is_of_use
from sframe_unwind.elf.constants import FILE_HEADER, SECTION_HEADER
from tests.elf.objects import run, tools_for
from tests.hanging import HANG
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


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(59), b"\x7fELF\x02\x01" + b"\xff" * 90],
)
def test_damaged_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(content)
    assert is_of_use(str(path)) is False


LOADED = """
import sys
from sframe_unwind.debugger.of_use import is_of_use
print(is_of_use(sys.argv[1]), "sframe_unwind.debugger.file_check" in sys.modules, "typing" in sys.modules)
"""


@pytest.mark.parametrize(("flag", "said"), [("-g", "False False False"), ("-Wa,--gsframe", "True True True")])
def test_a_glance_suffices_for_a_usual_file_without_sframe(flag: str, said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", LOADED, str(_built(tmp_path, flag))]
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.split() == said.split()


def _changed_headers(data: bytes) -> Iterator[bytes]:
    """Yield a file with each field of its header, and of the header of the section with the names, changed."""
    header = list(struct.unpack_from(f"<{FILE_HEADER}", data))
    shoff, shstrndx = header[6], header[13]
    places = [(FILE_HEADER, 0), (SECTION_HEADER, shoff + shstrndx * struct.calcsize(f"<{SECTION_HEADER}"))]
    for layout, place in places:
        fields = list(struct.unpack_from(f"<{layout}", data, place))
        for number, value in enumerate(fields):
            if isinstance(value, bytes):
                continue
            for other in (0, 1, value + 1, 0x7FFF, 0xFFFF):
                changed = bytearray(data)
                struct.pack_into(f"<{layout}", changed, place, *fields[:number], other, *fields[number + 1 :])
                yield bytes(changed)
    for order in (0, 2):  # the other byte order, and none
        yield data[:5] + bytes([order]) + data[6:]
    for end in (len(data) - 1, shoff + 1, shoff - 1, 64, 63):
        yield data[:end]


@pytest.mark.parametrize("flag", ["-g", "-Wa,--gsframe"])
def test_a_glance_at_an_unusual_file_overlooks_nothing(flag: str, tmp_path: Path) -> None:
    built = _built(tmp_path, flag)
    data, found = built.read_bytes(), []
    for number, changed in enumerate(_changed_headers(data)):
        path = tmp_path / f"changed{number}"
        path.write_bytes(changed)
        found.append(has_use(str(path), True))
        assert is_of_use(str(path)) is found[-1], number
        path.unlink()
    assert len(found) > 100
    assert any(found) is (flag != "-g")


def test_a_file_of_the_other_byte_order(tmp_path: Path) -> None:
    with toolchain_needed():
        tools = tools_for("s390x", 3)
        for name, option in (("plain", []), ("described", ["--gsframe"])):
            (tmp_path / "a.s").write_text(".text\nf:\n.cfi_startproc\nbr %r14\n.cfi_endproc\n", encoding="utf-8")
            run(f"{tools}/as", *option, tmp_path / "a.s", "-o", tmp_path / name)
    assert is_of_use(str(tmp_path / "plain")) is False
    assert is_of_use(str(tmp_path / "described")) is True


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
