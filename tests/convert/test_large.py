"""A file that is larger than the memory of the process is converted, and the copy of a sparse file is sparse."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hanging import HANG
from tests.samples import readelf
from tests.samples.build import build, run_command, toolchain

_SIZE, _MEMORY = 1 << 30, 1 << 29
"""Size of the file, and the limit of the address space of the process, in bytes."""
_BLOCK = 512
"""The unit of ``st_blocks``, in bytes."""
_COPY = {"sframe": ["--from", "dwarf"], "debug_frame": ["--as", "copy", "--all"]}


@pytest.mark.parametrize("to", list(_COPY))
def test_copy_of_a_sparse_program(tmp_path: Path, to: str) -> None:
    program, sparse, copy = build("leaf", "amd64", 3), tmp_path / "sparse", tmp_path / "copy"
    content = program.read_bytes()
    sparse.write_bytes(content)
    with sparse.open("r+b") as stream:
        stream.truncate(_SIZE)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    command = [sys.executable, "-m", "sframe_unwind", "convert", sparse, "-o", copy, "--to", to, *_COPY[to]]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=HANG, preexec_fn=limited, check=False
    )
    assert done.returncode == 0, done.stderr
    status = copy.stat()
    assert status.st_size > _SIZE
    assert status.st_blocks * _BLOCK < len(content) + (1 << 20)
    assert f".{to}" in readelf.read_sections(toolchain("amd64", 3), copy)
    copy.chmod(0o755)
    runs = [
        subprocess.run(run_command(path, "amd64"), capture_output=True, timeout=HANG, check=False)
        for path in (program, copy)
    ]
    assert (runs[0].returncode, runs[0].stdout) == (runs[1].returncode, runs[1].stdout)
