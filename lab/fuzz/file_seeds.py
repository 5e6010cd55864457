"""Undamaged whole files for mutations: programs, objects, archives, and core files of three machines."""

from __future__ import annotations

import fcntl
import functools
import lzma
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from lab.fuzz.seeds import Seed
from sframe_unwind.memory import STRUCT_MARKS
from tests.abis.debuggers import described, newest, sysroot
from tests.elf.objects import ONE, TWO, compile_object, tools_for
from tests.expectations import STOPS
from tests.gdb.driver import call
from tests.hanging import HANG
from tests.samples.build import CACHE, build
from tests.samples.catalogue import ABIS

FOLDER = CACHE.parent / f"fuzz-seeds-2-{zlib.crc32(bytes(CACHE)):08x}"
"""The files are made once; the first number in the name grows when other files are needed.  Core files name programs
in this checkout, whose debug information, and with it the build ID, contains the path of the checkout."""
SECONDS = HANG
CORES = ("amd64", "aarch64", "s390x")
_PAGE = 4096


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return all files, in a stable order.  The first word of a name is the kind of file, the last one the ABI."""
    with (_existing(CACHE.parent) / f"{FOLDER.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process makes them, and the others wait
        if not FOLDER.is_dir():
            _make()
    return tuple(Seed(path.name, path.read_bytes(), 0) for path in sorted(FOLDER.iterdir()))


def _make() -> None:
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as made:
        for name, content in _made(Path(made)):
            (_existing(Path(made) / "seeds") / name).write_bytes(content)
        (Path(made) / "seeds").rename(FOLDER)


def content_of(name: str) -> bytes:
    """Return the contents of the undamaged file with a name."""
    return next(seed.data for seed in seeds() if seed.name == name)


def _made(folder: Path) -> Iterator[tuple[str, bytes]]:
    for abi, described_abi in ABIS.items():
        variant = "pac" if described_abi.signs else "O2"
        for version in described_abi.versions:
            yield f"program free_walk version {version} {abi}", build("free_walk", abi, version, variant).read_bytes()
        yield (
            f"object of two sections {abi}",
            compile_object(tools_for(abi, 3), abi, ONE, _existing(folder / abi) / "one.o").read_bytes(),
        )
        bare = folder / abi / "bare.o"
        tools = tools_for(abi, 3)
        command: list[str | Path] = [tools / "objcopy", "--remove-section", ".sframe", folder / abi / "one.o", bare]
        subprocess.run(command, check=True, timeout=SECONDS)
        yield f"object without SFrame {abi}", bare.read_bytes()
    yield "program plt amd64", build("plt").read_bytes()
    yield "program stripped amd64", _with_embedded_symbols(folder)
    yield "object compressed amd64", _compressed(folder)
    yield from _archives(folder)
    for abi in CORES:
        for producer, path in _cores(abi, folder):
            yield f"core {producer} {abi}", compact(path.read_bytes(), abi)


def _with_embedded_symbols(folder: Path) -> bytes:
    """Return a program whose symbols are in `.gnu_debugdata`, without a checksum that would detect damage."""
    source, symbols, packed, target = build("plt"), folder / "symbols", folder / "symbols.xz", folder / "stripped"
    subprocess.run(["objcopy", "--only-keep-debug", source, symbols], check=True, timeout=SECONDS)
    packed.write_bytes(lzma.compress(symbols.read_bytes(), check=lzma.CHECK_NONE))
    options = ["--strip-all", "--add-section", f".gnu_debugdata={packed}"]
    subprocess.run(["objcopy", *options, source, target], check=True, timeout=SECONDS)
    return target.read_bytes()


def _compressed(folder: Path) -> bytes:
    """Return an object file with a compressed `.debug_frame`."""
    tools, file = tools_for("amd64", 3), folder / "compressed.o"
    source = folder / "compressed.s"
    function = ".cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\nret\n.cfi_endproc\n"
    text = "".join(f"f{number}: {function}" for number in range(40))
    source.write_text(f".cfi_sections .debug_frame, .sframe\n{text}", encoding="ascii")
    subprocess.run([tools / "as", "-o", file, source], check=True, timeout=SECONDS)
    subprocess.run([tools / "objcopy", "--compress-debug-sections=zlib", file], check=True, timeout=SECONDS)
    return file.read_bytes()


def _archives(folder: Path) -> Iterator[tuple[str, bytes]]:
    tools = tools_for("amd64", 3)
    for name, source in (("one.o", ONE), ("two_with_a_long_name.o", TWO)):
        compile_object(tools, "amd64", source, folder / name)
    members = ("one.o", "two_with_a_long_name.o")
    for kind, flags in (("archive", "rcs"), ("thin", "rcsT")):
        subprocess.run(["ar", flags, f"{kind}.a", *members], cwd=folder, check=True, timeout=SECONDS)
        yield f"{kind} of two amd64", (folder / f"{kind}.a").read_bytes()
    for name in members:
        command: list[str | Path] = [
            tools / "objcopy",
            "--remove-section",
            ".sframe",
            folder / name,
            folder / f"bare_{name}",
        ]
        subprocess.run(command, check=True, timeout=SECONDS)
    bare = [f"bare_{name}" for name in members]
    subprocess.run(["ar", "rcs", "bare.a", *bare], cwd=folder, check=True, timeout=SECONDS)
    yield "archive without SFrame amd64", (folder / "bare.a").read_bytes()


def _cores(abi: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the core files of a small program by the kernel, GDB and QEMU."""
    stop = next(stop for stop in STOPS if stop.sample == "free_walk")
    target = _existing(folder / f"cores-{abi}")
    (by_producer,) = call(
        newest(abi),
        "tests.process.inside.cores.collect",
        programs=[described(stop, program(abi), abi)],
        sysroot=sysroot(abi),
        folder=str(target),
    )
    for producer, core in sorted(by_producer.items()):
        yield producer, Path(core["file"])


def program(abi: str) -> Path:
    """Return the program of a core file."""
    return build("free_walk", abi, 3, "O2")


def compact(core: bytes, abi: str) -> bytes:
    """Return a core file without the empty pages at the start of its segments, most of which are of the stack."""
    mark = STRUCT_MARKS[ABIS_ORDER[abi]]
    header = struct.Struct(mark + "IIQQQQQQ")
    (start,) = struct.unpack_from(mark + "Q", core, 32)
    (count,) = struct.unpack_from(mark + "H", core, 56)
    headers = [list(header.unpack_from(core, start + header.size * number)) for number in range(count)]
    result = bytearray(core[: min(entry[2] for entry in headers if entry[5])])
    for number, entry in enumerate(headers):
        kind, _, offset, _, _, size, _, _ = entry
        data = core[offset : offset + size]
        empty = 0
        while kind == 1 and data[empty : empty + _PAGE] == bytes(_PAGE):
            empty += _PAGE
        entry[2], entry[3], entry[5], entry[6] = len(result), entry[3] + empty, size - empty, entry[6] - empty
        result += data[empty:]
        header.pack_into(result, start + header.size * number, *entry)
    struct.pack_into(mark + "Q", result, 40, 0)  # e_shoff: some have section headers after the segments
    struct.pack_into(mark + "H", result, 60, 0)
    return bytes(result)


ABIS_ORDER = {"amd64": "little", "aarch64": "little", "s390x": "big"}


def _existing(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def place_members(folder: Path) -> None:
    """Write the files to which the thin archive refers into its folder."""
    archive = content_of("archive of two amd64")
    for name in ("one.o", "two_with_a_long_name.o"):
        start = archive.index(b"\x7fELF") if name == "one.o" else archive.rindex(b"\x7fELF")
        (folder / name).write_bytes(archive[start:])
    shutil.copy(program("amd64"), folder / "program")
