"""Annotates the assembly of OpenSSL and musl for three machines, and proves the result.

python -m lab.code.annotated [--keep FOLDER] [--why]

For each project and machine: the sources, their functions, how many are described from start to end, how many have
their directives in the patched source, the instructions of all functions, and at how many the CFI is proved.  CFI that
a source has is removed first.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.annotate.functions import Annotated, annotated
from sframe_unwind.annotate.patch import patch_of
from sframe_unwind.annotate.proof import prove
from sframe_unwind.elf import opened
from tests.hanging import HANG
from tools.binutils import provide
from tools.debian import fetch_archives
from tools.ending import exit_with

SUITE, BINUTILS = "bookworm", "2.47"


class _Machine(NamedTuple):
    """How the sources for a machine are made."""

    target: str
    """Its name in the names of folders of musl, and for :func:`tools.binutils.provide`."""
    scripts: tuple[str, ...]
    """The names of OpenSSL's scripts, as patterns."""
    flavour: str
    """The first argument of these scripts."""
    macros: tuple[str, ...]
    """The macros that the preprocessor knows."""


_MACHINES = {
    "AMD64": _Machine("x86_64", ("*-x86_64.pl",), "elf", ()),
    "AArch64": _Machine(
        "aarch64",
        ("*armv8*.pl",),
        "linux64",
        ("__aarch64__", "__AARCH64EL__", "__ARM_ARCH=8", "__ARM_MAX_ARCH__=8"),
    ),
    "s390x": _Machine("s390x", ("*s390x.pl",), "64", ("__s390x__",)),
}
_CFI = re.compile(rb"^[ \t]*\.cfi_.*$", re.MULTILINE)


class Outcome(NamedTuple):
    """The result for one source."""

    functions: int
    whole: int
    """Number of functions whose directives reach from start to end."""
    patched: int
    proved: int
    """Number of instructions at which the assembled CFI is proved."""
    instructions: int
    problems: list[str]
    """Where the assembled CFI is not proved."""
    left: list[str]
    """Why functions or parts of them have no directives."""


def sources(package: str, folder: Path) -> Path:
    """Return the folder with the sources of a package."""
    archives = [path for path in fetch_archives(SUITE, package, folder) if ".orig.tar" in path.name]
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder / package)  # apt has verified it
    (unpacked,) = (folder / package).iterdir()
    return unpacked


def of_openssl(root: Path, machine: _Machine, folder: Path) -> Iterator[Path]:
    """Yield the sources that OpenSSL's scripts make for a machine."""
    for pattern in machine.scripts:
        for script in sorted(root.glob(f"crypto/*/asm/{pattern}")):
            made = folder / f"{script.stem}.S"
            command = ["perl", str(script), machine.flavour, str(made)]
            subprocess.run(command, cwd=root, capture_output=True, timeout=HANG, check=True)
            yield made


def of_musl(root: Path, machine: _Machine) -> Iterator[Path]:
    """Yield the sources of musl for a machine."""
    return (path for path in sorted(root.glob(f"src/*/{machine.target}/*")) if path.suffix in (".s", ".S"))


def prepared(source: Path, root: Path, machine: _Machine, folder: Path) -> Path:
    """Return a source after the preprocessor, without CFI."""
    defined = [f"-D{macro}" for macro in machine.macros]
    found = [f"-I{path}" for path in (source.parent, root / "crypto", root / "include")]
    text = source.read_bytes()
    if source.suffix == ".S":
        command = ["gcc", "-E", "-P", "-undef", *defined, *found, "-x", "assembler-with-cpp", str(source)]
        text = subprocess.run(command, capture_output=True, timeout=HANG, check=True).stdout
    result = folder / f"{source.stem}.s"
    result.write_bytes(_CFI.sub(b"", text))
    return result


def outcome(source: Path, assembler: Path) -> Outcome:
    """Annotate a source; check the result."""
    made = source.with_suffix(".o")
    subprocess.run([str(assembler), "-g", "-o", str(made), str(source)], timeout=HANG, check=True)
    with opened(made) as binary:
        functions = annotated(binary)
        patch = patch_of(binary, str(made), functions, None)
        proof = prove(binary, patch, f"{assembler} -g") if patch.files else None
    return Outcome(
        functions=len(functions),
        whole=sum(one.is_whole for one in functions),
        patched=len(patch.patched),
        proved=proof.instructions if proof is not None else 0,
        instructions=sum(len(one.instructions) for one in functions),
        problems=[*(proof.problems if proof is not None else ())],
        left=[*map(str, patch.obstacles), *(line for one in functions for line in _left(one))],
    )


def _left(function: Annotated) -> Iterator[str]:
    if function.why:
        yield f"{function.name}: {function.why}"
    for start, end in function.gaps:
        yield f"{function.name}: nothing from {start - function.start:#x} to {end - function.start:#x}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.code.annotated", description=__doc__)
    parser.add_argument("--keep", type=Path, help="keep the sources and objects in this folder")
    parser.add_argument("--why", action="store_true", help="print why functions have no directives")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        return _study(folder, options.why)


def _study(folder: Path, why: bool) -> int:
    print("| sources | machine | files | functions | whole | patched | instructions | proved |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    failed = False
    for package in ("openssl", "musl"):
        root = sources(package, folder)
        for name, machine in _MACHINES.items():
            place = folder / f"{package}-{machine.target}"
            place.mkdir()
            given = of_openssl(root, machine, place) if package == "openssl" else of_musl(root, machine)
            assembler = provide(BINUTILS, machine.target) / "as"
            found = [outcome(prepared(source, root, machine, place), assembler) for source in given]
            sums = [sum(numbers) for numbers in zip(*(one[:5] for one in found))]
            functions, whole, patched, proved, instructions = sums
            counts = (len(found), functions, whole, patched, instructions, proved)
            print(f"| {package} | {name} | " + " | ".join(f"{count:,}" for count in counts) + " |", flush=True)
            for one in found:
                for line in [*one.problems, *(one.left if why else ())]:
                    print(f"  {line}")
                failed |= bool(one.problems)
    return int(failed)


if __name__ == "__main__":
    exit_with(main)
