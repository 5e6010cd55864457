"""The files that are found in packages and archives, and the reports about those that are skipped."""

from __future__ import annotations

import bz2
import ctypes
import gc
import gzip
import hashlib
import lzma
import os
import random
import re
import socket
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from sframe_unwind.errors import MissingExtraError
from sframe_unwind.survey.bounds import Bounds
from sframe_unwind.survey.finding import NOT_ELF, Finder, FoundFile, Passed, Same, Skipped
from tests.elf.objects import run
from tests.survey.programs import cpio, program, rpm, special, tar

SMALL = Bounds(depth=4, growth=10, always=1 << 22, file=1 << 20, members=1000)


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no test leaves a file in the working folder or among the temporary files."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    yield
    assert not list(work.iterdir())
    assert not list(temporary.iterdir())


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def found(path: Path, bounds: Bounds = SMALL) -> dict[str, str]:
    """Return by path below the given one the digest of each found file, or the reason why it is skipped."""
    result = {}
    for item in Finder(bounds).find(str(path)):
        if isinstance(item, Passed):
            continue
        below = item.path[len(str(path)) :].lstrip("/")
        if isinstance(item, FoundFile):
            assert hashlib.sha256(item.data).hexdigest() == item.digest
        result[below] = item.reason if isinstance(item, Skipped) else item.digest
    return result


def digest(number: int = 0) -> str:
    return hashlib.sha256(program(number)).hexdigest()


MEMBERS = {"usr/bin/one": program(1), "usr/lib/two.so": program(2), "usr/share/doc/three": b"text\n"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar(tmp_path: Path, mode: str) -> None:
    path = write(tmp_path, "some.tar", tar(MEMBERS, mode=mode))
    assert found(path) == {"usr/bin/one": digest(1), "usr/lib/two.so": digest(2), "": NOT_ELF}


@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd"])
def test_debian_package(tmp_path: Path, kind: str) -> None:
    """The package is made by dpkg-deb; the files found are those that it lists."""
    tree = tmp_path / "tree"
    for name, data in MEMBERS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    (tree / "DEBIAN").mkdir()
    text = "Package: some\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n"
    (tree / "DEBIAN" / "control").write_text(text)
    (tree / "usr/lib/link.so").symlink_to("two.so")
    os.link(tree / "usr/lib/two.so", tree / "usr/lib/hard.so")
    package = tmp_path / "some_1_all.deb"
    run("dpkg-deb", f"-Z{kind}", "--build", tree, package)
    result = found(package)
    assert result.pop("") == NOT_ELF
    assert result.pop("usr/lib/link.so") == "a symbolic link"
    assert result == {
        "usr/bin/one": digest(1),
        "usr/lib/two.so": digest(2),
        "usr/lib/hard.so": digest(2),
    }
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    names = {line.split(" ./", 1)[1].split(" link to ")[0] for line in listed.splitlines() if line[0] in "-h"}
    assert names - {"usr/share/doc/three"} == set(result)


def test_system_package_is_as_dpkg_lists_it() -> None:
    """All files of a package on this system, compared with the list that dpkg keeps."""
    listed = subprocess.run(["dpkg", "-L", "libc-bin"], capture_output=True, text=True, check=True).stdout
    paths = [Path(line) for line in listed.splitlines()]
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    elf = {str(path) for path in files if path.read_bytes().startswith(b"\x7fELF")}
    seen = {item.path for path in files for item in Finder().find(str(path)) if isinstance(item, FoundFile)}
    assert seen == elf
    assert elf


def test_rpm_package(tmp_path: Path) -> None:
    path = write(tmp_path, "some-1-1.x86_64.rpm", rpm({f"./{name}": data for name, data in MEMBERS.items()}))
    assert found(path) == {"usr/bin/one": digest(1), "usr/lib/two.so": digest(2), "": NOT_ELF}


def test_other_archives(tmp_path: Path) -> None:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    expected = {"usr/bin/one": digest(1), "usr/lib/two.so": digest(2), "": NOT_ELF}
    assert found(write(tmp_path, "some.zip", stream.getvalue())) == expected
    assert found(write(tmp_path, "some.cpio", cpio(MEMBERS))) == expected


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_file(tmp_path: Path, compress: object) -> None:
    """Kernel modules are compressed files; a compressed text is not an ELF file either."""
    path = write(tmp_path, "module.ko.x", compress(program()))  # type: ignore[operator]
    assert found(path) == {"": digest()}
    assert found(write(tmp_path, "text.x", compress(b"text\n"))) == {"": NOT_ELF}  # type: ignore[operator]


def test_static_library(tmp_path: Path) -> None:
    member = write(tmp_path, "one.o", program())
    long_name = write(tmp_path, "a_name_of_more_than_fifteen_letters.o", program(1))
    run("ar", "rc", tmp_path / "lib.a", member, long_name)
    run("ar", "rcT", tmp_path / "thin.a", member)
    assert found(tmp_path / "lib.a") == {"(one.o)": digest(), f"({long_name.name})": digest(1)}
    assert found(tmp_path / "thin.a") == {"": "a thin archive: its members are files by themselves"}


def test_archives_within_archives(tmp_path: Path) -> None:
    data = program()
    for number in range(5):
        data = tar({f"{number}.tar": data, f"beside{number}": program(number)}, mode="w:gz")
    result = found(write(tmp_path, "all.tar.gz", data))
    reason = "nested in 4 archives; what is further in is not looked at"
    assert result["4.tar/3.tar/2.tar/1.tar"] == reason
    assert {name for name, what in result.items() if what != reason} == {
        *("beside4", "4.tar/beside3", "4.tar/3.tar/beside2", "4.tar/3.tar/2.tar/beside1")
    }


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    others = (
        special("link", tarfile.SYMTYPE, "/etc/passwd"),
        special("hard", tarfile.LNKTYPE, "program"),
        special("out", tarfile.LNKTYPE, "/etc/passwd"),
        special("fifo", tarfile.FIFOTYPE),
        special("null", tarfile.CHRTYPE),
        special("disk", tarfile.BLKTYPE),
        special("folder", tarfile.DIRTYPE),
    )
    names = {"program": program(), "../../up": program(1), "/absolute": program(2), "a/../../b": program(3)}
    assert found(write(tmp_path, "some.tar", tar(names, *others))) == {
        "program": digest(),
        "hard": digest(),
        "absolute": digest(2),
        "../../up": "a name that leads out of the archive",
        "a/../../b": "a name that leads out of the archive",
        "link": "a symbolic link",
        "out": "a link to something that is not an ELF file here",
        "fifo": "a FIFO",
        "null": "a device",
        "disk": "a device",
    }


def test_directory(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    write(tree, "one", program(1))
    write(tree / "below", "two", program(1))
    write(tree, "text", b"text\n")
    write(tree, "empty", b"")
    (tree / "folder").symlink_to(tree / "below")
    (tree / "up").symlink_to(tmp_path)
    (tree / "to-file").symlink_to("one")
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tree / "socket"))
        assert found(tree) == {
            "one": digest(1),
            "below/two": digest(1),
            "": NOT_ELF,
            "folder": "a symbolic link",
            "up": "a symbolic link",
            "to-file": "a symbolic link",
            "fifo": "a FIFO",
            "socket": "a socket",
        }
    # A link that is named itself is followed, wherever it leads.
    assert found(tree / "to-file") == {"": digest(1)}
    assert found(tmp_path / "nothing") == {"": "No such file or directory"}


def test_files_of_other_machines(tmp_path: Path) -> None:
    other = bytearray(program())
    other[18] = 243
    small = bytearray(program())
    small[4] = 1
    tree = tmp_path / "tree"
    tree.mkdir()
    write(tree, "riscv", bytes(other))
    write(tree, "x32", bytes(small))
    write(tree, "cut", program()[:10])
    assert found(tree) == {
        "riscv": "an ELF file for machine 243, little-endian, without SFrame ABI",
        "x32": "a 32-bit ELF file",
        "cut": "truncated within the ELF header",
    }


def bomb(kind: str) -> bytes:
    """Return an archive that unpacks to 64 MB."""
    zeros = bytes(1 << 26)
    if kind == "member":
        return tar({"zeros": zeros, "program": program()}, mode="w:gz")
    if kind == "ELF file":
        return tar({"program": program() + zeros}, mode="w:gz")
    if kind == "nested":
        return tar({"inner.tar": tar({"zeros": zeros})}, mode="w:gz")
    return tar({"x" * (1 << 25): b""}, mode="w:gz")  # the name


@pytest.mark.parametrize("kind", ["member", "ELF file", "nested", "long name"])
def test_bombs_are_bounded(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, "some.tgz", bomb(kind))
    tracemalloc.start()
    result = found(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    (reason,) = result.values()
    assert re.match(r"unpacks to more than|larger than|a damaged archive", reason)


def test_memory_does_not_wait_for_the_garbage_collector(tmp_path: Path) -> None:
    """The command collects garbage seldom, and libarchive's buffers are large."""
    path = write(tmp_path, "some.tar", tar({f"{number}.gz": gzip.compress(program(number)) for number in range(9)}))
    gc.collect()
    gc.disable()
    try:
        assert list(Finder(SMALL).find(str(path)))
        assert not [one for one in gc.get_objects() if isinstance(one, ctypes.Array) and ctypes.sizeof(one) >= 4096]
    finally:
        gc.enable()


def test_archive_of_itself(tmp_path: Path) -> None:
    """Each level has the next one ten times: all of them share the limits of the outermost one."""
    data = tar({"program": program()})
    for number in range(3):
        data = tar({f"{number}.{copy}.tar": data for copy in range(10)}, mode="w:gz")
    result = found(write(tmp_path, "some.tgz", data), SMALL._replace(members=50))
    assert result[""] == "more than 50 members"


def test_damaged_archives(tmp_path: Path) -> None:
    """The archives are cut at many places, or have bytes changed: each gives a report, and none an exception."""
    packed = tar(MEMBERS, mode="w:gz")
    for size in range(1, len(packed), 37):
        found(write(tmp_path, "some.tgz", packed[:size]))
    assert found(write(tmp_path, "some.tgz", packed[: len(packed) // 2]))[""].startswith("a damaged archive")
    plain = rpm(MEMBERS)
    for at in range(0, 400, 3):
        found(write(tmp_path, "some.rpm", plain[:at] + b"\xff\xff" + plain[at + 2 :]))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_archive_that_ends_within_a_member(tmp_path: Path, mode: str) -> None:
    """Random bytes after the program keep the compressor from putting all members into one block."""
    large = program() + random.Random(mode).randbytes(300_000)
    packed = tar({"first": program(), "large": large}, mode=mode)
    assert found(write(tmp_path, "whole", packed)) == {"first": digest(), "large": hashlib.sha256(large).hexdigest()}
    for size in range(len(packed) // 4, len(packed) - 20_000, 40_000):
        assert found(write(tmp_path, "cut", packed[:size]))[""].startswith("a damaged archive: ")


def test_damaged_archive_costs_no_other(tmp_path: Path) -> None:
    damaged = tar(MEMBERS, mode="w:gz")[:300]
    result = found(write(tmp_path, "some.tar", tar({"bad.tgz": damaged, "good": program()})))
    assert result["good"] == digest()
    assert result["bad.tgz"].startswith("a damaged archive")


def test_file_that_changes(tmp_path: Path) -> None:
    path = write(tmp_path, "some.tar", tar({"one": program(1), "two": program(2)}))
    items = Finder(SMALL).find(str(path))
    first = next(items)
    assert isinstance(first, FoundFile)
    with path.open("ab") as stream:
        stream.write(b"more")
    assert Skipped(str(path), "changed while it was read") in list(items)


def test_file_that_becomes_shorter(tmp_path: Path) -> None:
    run("ar", "rc", tmp_path / "lib.a", write(tmp_path, "one.o", program(1)), write(tmp_path, "two.o", program(2)))
    items = Finder(SMALL).find(str(tmp_path / "lib.a"))
    assert isinstance(next(items), FoundFile)
    with (tmp_path / "lib.a").open("r+b") as stream:
        stream.truncate(200)
    assert any(isinstance(item, Skipped) for item in items)


def test_libarchive_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are still found; an archive that cannot be read is not taken for an empty one."""
    tree = tmp_path / "tree"
    tree.mkdir()
    write(tree, "one", program())
    monkeypatch.setitem(sys.modules, "libarchive", None)
    assert found(tree) == {"one": digest()}
    write(tree, "two.tar", tar(MEMBERS))
    with pytest.raises(MissingExtraError, match=r"pip install libarchive-c"):
        found(tree)


def test_other_name_of_a_member(tmp_path: Path) -> None:
    path = write(tmp_path, "some.tar", tar({"one": program()}, special("two", tarfile.LNKTYPE, "one")))
    items = list(Finder(SMALL).find(str(path)))
    assert Same(f"{path}/two", digest(), len(program())) in items
