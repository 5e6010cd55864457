"""The memory of commands is bounded for files with gigabytes that they do not need: holes of sparse files."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from lab.fuzz.file_seeds import content_of, program
from sframe_unwind import elf
from sframe_unwind.elf.constants import PT_NOTE
from tests.hanging import HANG

_MOST = 300 << 20
"""The largest number of bytes that a command may take."""
_LARGE = 3 << 30
_NOTES = 5 << 30
_MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "sframe_unwind", *sys.argv[1:]], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, done.returncode)
print(done.stdout + done.stderr)
"""


def measured(*arguments: object) -> tuple[int, int, str]:
    """Run a command; return the number of bytes that it took, its exit status, and its output."""
    command = [sys.executable, "-c", _MEASURE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    first, _, text = done.stdout.partition("\n")
    peak, status = map(int, first.split())
    return peak, status, text


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return a program whose `.debug_info` continues for gigabytes in a hole."""
    path = tmp_path / "large"
    shutil.copyfile(program("amd64"), path)
    with elf.opened(path) as binary:
        section = binary.named(".debug_info")
        end = binary.size
        contents = binary.read(section.offset, section.size) if section is not None else b""
    assert section is not None
    with path.open("r+b") as stream:
        stream.seek(40)  # e_shoff
        (headers,) = struct.unpack("<Q", stream.read(8))
        stream.seek(headers + 64 * section.number + 24)  # sh_offset and sh_size
        stream.write(struct.pack("<QQ", end, _LARGE))
        stream.seek(end)
        stream.write(contents)
        stream.truncate(end + _LARGE)
    return path


@pytest.mark.parametrize("command", ["dump", "lookup", "verify", "lint", "archive"])
def test_large_debug_information(large: Path, tmp_path: Path, command: str) -> None:
    arguments: list[object] = [command, large]
    if command == "lookup":
        arguments.append("_start")
    elif command == "archive":
        archive = tmp_path / "large.a"
        header = b"large/".ljust(48) + str(large.stat().st_size).encode().ljust(10) + b"`\n"
        size = large.stat().st_size
        with large.open("r+b") as stream:
            start = stream.read(1 << 20)
        with archive.open("wb") as stream:
            stream.write(b"!<arch>\n" + header + start)
            stream.truncate(8 + len(header) + size)
        arguments = ["verify", archive]
    peak, status, text = measured(*arguments)
    assert status == 0, text
    assert peak < _MOST


def test_large_debug_information_of_a_stack(large: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.write_bytes(content_of("core gdb amd64"))
    peak, status, text = measured("backtrace", "--core", core, "--exe", large, "--debug-dir", tmp_path)
    assert status == 0, text
    assert "#0" in text
    assert peak < _MOST


def test_large_notes_of_a_core_file(tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.write_bytes(content_of("core gdb amd64"))
    with elf.opened(core) as binary:
        number = next(number for number, segment in enumerate(binary.segments) if segment.type == PT_NOTE)
        end = binary.size
    with core.open("r+b") as stream:
        stream.seek(32)  # e_phoff
        (headers,) = struct.unpack("<Q", stream.read(8))
        entry = headers + 56 * number
        stream.seek(entry + 8)  # p_offset
        stream.write(struct.pack("<Q", end))
        stream.seek(entry + 32)  # p_filesz
        stream.write(struct.pack("<Q", _NOTES))
        stream.truncate(end + _NOTES)
    peak, status, text = measured("backtrace", "--core", core, "--exe", program("amd64"), "--debug-dir", tmp_path)
    assert (status, text.count("\n")) == (2, 2), text
    assert "more than 524,288 notes in a segment" in text
    assert peak < _MOST
