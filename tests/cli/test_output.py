"""Files that a command writes are complete, or the old file stays."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli.output import check_writable
from sframe_unwind.errors import FileError
from tests.hanging import HANG
from tests.samples.build import build

OLD = "an older report\n"
LIMIT = 4096
"""Size limit of files in the process, which cannot write its report, as on a full disk."""


@pytest.fixture(scope="module")
def program() -> Path:
    return build("recursion")


def run(*arguments: object, limit: bool = False) -> subprocess.CompletedProcess[str]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))

    command = [sys.executable, "-m", "sframe_unwind", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=HANG, preexec_fn=limited if limit else None, check=False
    )


@pytest.mark.parametrize("options", [("verify", "--html"), ("lint", "--sarif")], ids=lambda options: options[0])
def test_a_report_that_cannot_be_written_leaves_the_old_one(
    options: tuple[str, str], tmp_path: Path, program: Path
) -> None:
    command, option = options
    report = tmp_path / "report"
    report.write_text(OLD, encoding="utf-8")
    done = run(command, option, report, program, limit=True)
    assert done.returncode == 2, done.stderr
    assert f"{report}: cannot be written: File too large" in done.stderr
    assert report.read_text(encoding="utf-8") == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_report_keeps_the_permissions_of_the_old_one_and_its_link(tmp_path: Path, program: Path) -> None:
    report, link, new = tmp_path / "report", tmp_path / "link", tmp_path / "new"
    report.write_text(OLD, encoding="utf-8")
    report.chmod(0o640)
    link.symlink_to(report)
    for name in (link, new):
        assert run("verify", "--html", name, program).returncode == 1  # GNU ld describes .plt.got wrongly
    assert link.is_symlink()
    first, second = (re.sub(r"[-\d]+ [:\d]+ UTC", "", path.read_text(encoding="utf-8")) for path in (report, new))
    assert first == second
    plain = tmp_path / "plain"
    plain.touch()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (report, new, plain)]
    assert modes[0] == 0o640
    assert modes[1] == modes[2]


def test_a_report_may_go_to_a_device(program: Path) -> None:
    done = run("verify", "--html", "/dev/stderr", program)
    assert done.returncode == 1  # GNU ld describes .plt.got wrongly
    assert "</html>" in done.stderr


def test_too_few_open_files(tmp_path: Path, program: Path) -> None:
    files = [Path(shutil.copy(program, tmp_path / str(number))) for number in range(20)]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

    command = [sys.executable, "-m", "sframe_unwind", "verify", "-j", "20", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, preexec_fn=limited, check=False)
    assert done.returncode == 2
    assert "Too many open files: at most 20 (ulimit -n)" in done.stderr
    assert "cannot write" not in done.stderr


def test_read_only_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message differs from that for missing permissions."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match=": cannot be written: Permission denied"):
        check_writable("--html", str(tmp_path / "report"))
    found = os.statvfs(tmp_path)
    read_only = os.statvfs_result((*found[:8], found.f_flag | os.ST_RDONLY, found.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda _: read_only)
    with pytest.raises(FileError, match=": cannot be written: Read-only file system"):
        check_writable("--html", str(tmp_path / "report"))


@pytest.mark.parametrize("raises", [True, False])
def test_name_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: bool) -> None:
    """The methods of ``Path`` raise before Python 3.14, and then answer ``False``."""

    def refuse(path: Path, **_: object) -> bool:
        if raises:
            path.stat()
        return False

    for method in ("exists", "is_dir", "is_file"):
        monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(FileError, match=": cannot be written: File name too long"):
        check_writable("--html", str(tmp_path / ("x" * 300)))


@pytest.mark.parametrize("contents", [b"\x7fELF", b"!<arch>\n", b"!<thin>\n"])
@pytest.mark.parametrize(
    "command", ["verify --html", "verify --write-baseline", "lint --sarif", "lint --write-baseline", "show --html"]
)
def test_a_program_is_not_overwritten(command: str, contents: bytes, tmp_path: Path, program: Path) -> None:
    """In `verify --html a.so b.so`, the first library would become the page."""
    library = tmp_path / "a.so"
    library.write_bytes(contents + b"and the rest")
    done = run(*command.split(), library, program)
    assert done.returncode == 2
    option = command.split()[1]
    expected = f"{option}: {library} is an ELF file or an archive, which is not overwritten"
    assert (done.stdout, done.stderr) == ("", f"sframe-unwind: {expected}\n")
    assert library.read_bytes() == contents + b"and the rest"
