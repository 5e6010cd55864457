"""Real call frame information, compared with the decoding of pyelftools and readelf.

`python -m lab.cfi.libraries` compares more of it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lab.cfi.comparison import compare
from lab.cfi.libraries import FOLDERS
from tests.hanging import HANG
from tests.missing import absent, toolchain_needed
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS, WITH_LIBC

LIBRARIES = {"amd64": "libgcc_s.so.1", "aarch64": "libm.so.6", "s390x": "libgomp.so.1"}


def readelf(abi: str) -> Path:
    """Return the newest readelf."""
    with toolchain_needed():
        return toolchain(abi, ABIS[abi].versions[-1]) / "readelf"


def check(path: Path, abi: str, functions: int) -> None:
    """Compare one file."""
    result = compare(path, readelf(abi))
    assert not result.differences, "\n".join(result.differences[:3])
    assert result.functions >= functions


@pytest.mark.parametrize("abi", LIBRARIES)
def test_library(abi: str) -> None:
    path = FOLDERS[abi] / LIBRARIES[abi]
    if not path.exists() and abi == "amd64":
        path = Path("/lib/x86_64-linux-gnu") / LIBRARIES[abi]
    if not path.exists():
        absent(f"{path} is not installed")
    check(path.resolve(), abi, 100)


@pytest.mark.parametrize(
    ("abi", "name"), [*((abi, "free_walk") for abi in ABIS), *((abi, "callback") for abi in WITH_LIBC)]
)
def test_sample(abi: str, name: str) -> None:
    for variant in ("O2", "pac") if ABIS[abi].signs else ("O2", "fp"):
        check(build(name, abi, variant=variant), abi, 3)


@pytest.mark.parametrize("flags", [(), ("-gdwarf-2",), ("-gdwarf-5",), ("-gz",)], ids=lambda flags: " ".join(flags))
def test_debug_frame(flags: tuple[str, ...], tmp_path: Path) -> None:
    """With debugging information and without unwind tables, the compiler writes only .debug_frame."""
    source, program = tmp_path / "program.c", tmp_path / "program.so"
    source.write_text("int g(int *); int f(int n) { int room[n]; return g(room) + 1; }\n", encoding="ascii")
    gcc = shutil.which("gcc") or absent("gcc is not installed")
    options = ("-g", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-shared", "-fPIC", "-nostdlib", "-O2")
    subprocess.run([gcc, *options, *flags, str(source), "-o", str(program)], check=True, timeout=HANG)
    check(program, "amd64", 1)
