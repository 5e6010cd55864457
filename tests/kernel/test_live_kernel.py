"""The error messages of the command where the memory of the running kernel cannot be read."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import FileError
from sframe_unwind.process import drgn_kernel
from sframe_unwind.process.live_kernel import check_readable
from tests.hanging import HANG
from tests.missing import package_needed
from tests.samples.build import build

NOBODY = 65534


def test_it_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="/kcore: not there: the running kernel was built without CONFIG_PROC_KCORE"):
        check_readable(str(tmp_path / "kcore"))


def test_a_container_hides_it() -> None:
    """Container runtimes mount the null device over it."""
    with pytest.raises(FileError, match="/dev/null: hidden, as containers do: run the command on the host"):
        check_readable("/dev/null")


def test_it_belongs_to_root(tmp_path: Path) -> None:
    """Root may read any file, so another user tries it."""
    path = tmp_path / "kcore"
    path.write_bytes(b"memory")
    path.chmod(0)
    code = f"""
import os
from sframe_unwind.process.live_kernel import check_readable
if os.geteuid() == 0:
    os.chdir({str(tmp_path)!r})
    os.setuid({NOBODY})
check_readable("kcore")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.stderr.splitlines()[-1].endswith(
        "FileError: kcore: only root may read the memory of the running kernel"
    )


def test_the_kernel_refuses_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Under lockdown, or without CAP_SYS_RAWIO: other than a mode of the file, that is EPERM."""

    def refuses(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(FileError, match=r"CAP_SYS_RAWIO.*lockdown.*; a crash dump can be read"):
        check_readable(str(tmp_path))


def test_any_other_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Is a directory"):
        check_readable(str(tmp_path))


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The running kernel is asked for before its file is read."""
    package_needed("drgn")

    def refuses() -> None:
        raise FileError("/proc/kcore: this is why")

    monkeypatch.setattr(drgn_kernel, "check_readable", refuses)
    vmlinux = str(build("leaf", "amd64", 3))
    assert main(["backtrace", "--vmcore", "/proc/kcore", "--exe", vmlinux]) == 2
    assert capsys.readouterr().err == "sframe-unwind: /proc/kcore: this is why\n"
