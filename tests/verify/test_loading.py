"""Files whose segments cannot be loaded: `verify` and `lint` report it, and the programs do not run."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.elf.loading import loading_problems
from sframe_unwind.lint import PROFILES, lint
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.verify import verify
from tests.samples.build import build

PT_LOAD, PT_DYNAMIC, PT_PHDR = 1, 2, 6
Headers = list[list[int]]
"""Program headers: type, flags, offset, address, physical address, size in the file, size in memory, alignment."""


def overlapping(headers: Headers) -> None:
    *_, before, last = (header for header in headers if header[0] == PT_LOAD)
    last[3] += (before[3] & -0x1000) - (last[3] & -0x1000)
    before[6] = max(before[6], 0x1000)


def beyond_the_file(headers: Headers) -> None:
    code = next(header for header in headers if header[0] == PT_LOAD and header[1] & 1)
    code[2] += 0x1000000


def not_congruent(headers: Headers) -> None:
    code = next(header for header in headers if header[0] == PT_LOAD and header[1] & 1)
    code[2] += 8


def larger_in_the_file(headers: Headers) -> None:
    last = [header for header in headers if header[0] == PT_LOAD][-1]
    last[6] = last[5] - 1


def headers_elsewhere(headers: Headers) -> None:
    (own,) = (header for header in headers if header[0] == PT_PHDR)
    own[3] += 0x10000000


def dynamic_elsewhere(headers: Headers) -> None:
    (own,) = (header for header in headers if header[0] == PT_DYNAMIC)
    own[3] += 0x10000000


DAMAGE: dict[Callable[[Headers], None], str] = {
    overlapping: " overlap: the first ends at ",
    beyond_the_file: " of the file, which has ",
    not_congruent: ", expected the same remainder by 0x1000",
    larger_in_the_file: " bytes in the file, expected at most its ",
    headers_elsewhere: " are in no loaded segment",
    dynamic_elsewhere: "the dynamic section at 0x1000",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: str(damage.__name__))
def test_program_that_does_not_run(
    damage: Callable[[Headers], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, program = build("callback"), tmp_path / "program"
    assert verify(source).loading == ()
    assert runs(source)
    change(source, program, damage)
    assert not runs(program)
    assert any(DAMAGE[damage] in problem for problem in verify(program).loading)
    assert main(["verify", str(program)]) == 1
    assert f"  cannot be loaded: {verify(program).loading[0]}\n" in capsys.readouterr().out
    assert main(["verify", "--json", str(program)]) == 1
    assert json.loads(capsys.readouterr().out)["files"][0]["loading"] == list(verify(program).loading)
    judgement = lint(program, [PROFILES["linux-user"]]).sections[0].judgements[0]
    assert judgement.outcome is Outcome.REFUSED
    assert c.UNLOADABLE in {refusal.finding.rule for refusal in judgement.refusals}


def test_library_whose_segments_are_not_sorted(tmp_path: Path) -> None:
    """The dynamic linker computes the addresses from the first and the last segment."""
    source, library = tmp_path / "sorted.so", tmp_path / "library.so"
    compiler: list[str | Path] = ["gcc", "-shared", "-fPIC", "-x", "c", "-o", source, "-"]
    subprocess.run(compiler, input=b"int twice(int n) { return 2 * n; }", check=True, timeout=60)

    def turned(headers: Headers) -> None:
        loads = [number for number, header in enumerate(headers) if header[0] == PT_LOAD]
        headers[loads[0]], headers[loads[-1]] = headers[loads[-1]], headers[loads[0]]

    change(source, library, turned)
    assert [is_loaded(source), is_loaded(library)] == [True, False]
    with elf.opened(source) as before, elf.opened(library) as after:
        assert loading_problems(before) == []
        assert any(", expected them sorted" in problem for problem in loading_problems(after))


def test_program_headers_that_were_written_over_a_section(tmp_path: Path) -> None:
    """patchelf 0.14 to 0.18 does this if the section headers are not in the order of the file."""
    source, program = build("callback"), tmp_path / "program"
    content = bytearray(source.read_bytes())
    (count,) = struct.unpack_from("<H", content, 56)
    with elf.opened(source) as binary:
        _, end = binary.program_headers
        following = min(section.offset for section in binary.sections if section.offset >= end)
    more = (following - end) // 56 + 1
    content[end : end + 56 * more] = bytes(56 * more)  # PT_NULL
    struct.pack_into("<H", content, 56, count + more)
    program.write_bytes(content)
    program.chmod(0o755)
    assert not runs(program)
    problem, *_ = verify(program).loading
    assert re.fullmatch(rf"the program headers end at 0x\w+ of the file, over \.\S+ at {following:#x}", problem)


def is_loaded(library: Path) -> bool:
    command = [sys.executable, "-c", f"import ctypes; assert ctypes.CDLL({str(library)!r}).twice(4) == 8"]
    return not subprocess.run(command, capture_output=True, timeout=60, check=False).returncode


def change(source: Path, target: Path, damage: Callable[[Headers], None]) -> None:
    """Copy a file with other program headers."""
    content = bytearray(source.read_bytes())
    (start,) = struct.unpack_from("<Q", content, 32)
    (count,) = struct.unpack_from("<H", content, 56)
    headers = [list(fields) for fields in struct.iter_unpack("<IIQQQQQQ", content[start : start + 56 * count])]
    damage(headers)
    content[start : start + 56 * count] = b"".join(struct.pack("<IIQQQQQQ", *header) for header in headers)
    target.write_bytes(content)
    target.chmod(0o755)


def runs(program: Path) -> bool:
    try:
        return not subprocess.run([program], capture_output=True, timeout=60, check=False).returncode
    except OSError:  # the kernel refuses it
        return False
