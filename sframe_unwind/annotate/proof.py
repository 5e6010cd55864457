"""Assembles patched sources, and checks the CFI of the result against its machine code."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sframe_unwind.annotate.functions import Annotated
from sframe_unwind.annotate.patch import Patch, PatchedFile
from sframe_unwind.annotate.source_lines import code_reader
from sframe_unwind.code.judge.findings import DWARF
from sframe_unwind.elf import ElfBinary, opened
from sframe_unwind.errors import FileError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.verify.code_check import check_elf
from sframe_unwind.verify.plan import Plan


class Proof(NamedTuple):
    """The result of checking patched sources."""

    functions: int
    """Number of functions that were checked."""
    instructions: int
    """Number of their instructions at which the CFI is proved."""
    problems: list[str]
    """The places where the CFI is not proved, and functions with other code; none: all is proved."""


def prove(binary: ElfBinary, patch: Patch, command: str) -> Proof:
    """Assemble patched sources, and check the directives of their functions.

    The code has to be the same as before, and the code has to prove the CFI at each instruction that has some.

    :param binary: the file that was assembled from the sources without the directives.
    :param command: the assembler with its options, such as ``as -g`` or ``cc -c -Iinclude``; the name of the output
        and that of the source are added.
    :raises FileError: the command fails, or writes no file for this machine.
    """
    proofs = []
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate(patch.files):
            output = Path(folder, f"{number}.o")
            _assemble(source, output, command)
            with opened(output) as made:
                if made.arch is not binary.arch:
                    raise FileError(f"{command}: expected code for {binary.arch.name}, found {made.arch.name}")
                proofs.append(_checked(binary, made, patch.patched))
    found = {name for names, _ in proofs for name in names}
    absent = [one.name for one in patch.patched if one.name not in found]
    return Proof(
        functions=len(found),
        instructions=sum(proof.instructions for _, proof in proofs),
        problems=[
            *(problem for _, proof in proofs for problem in proof.problems),
            *(f"{name}: no such function in what the patched sources are assembled to" for name in absent),
        ],
    )


def _assemble(source: PatchedFile, output: Path, command: str) -> None:
    patched = output.with_suffix(source.path.suffix)
    patched.write_bytes(source.text)
    words = [*shlex.split(command), "-I", str(source.path.parent), "-o", str(output), str(patched)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="backslashreplace", check=False)
    except OSError as error:
        raise FileError(f"{words[0]}: {error.strerror or error}") from error
    if done.returncode or not output.exists():
        said = [
            line.replace(str(patched), f"{source.name} (patched)") for line in done.stderr.splitlines() if line.strip()
        ]
        why = next((line for line in said if "rror" in line), said[-1] if said else f"exit status {done.returncode}")
        raise FileError(f"{command}: {why}")


def _checked(before: ElfBinary, made: ElfBinary, functions: Sequence[Annotated]) -> tuple[set[str], Proof]:
    """Return the names of the functions that an assembled file has, and the result of checking them."""
    problems: list[str] = []
    starts: dict[str, int] = {}
    code_before, code = code_reader(before), code_reader(made)
    for function in functions:
        start, size = _start(before, made, function.start), function.end - function.start
        if start is not None:
            starts[function.name] = start
            if before.is_object and code(start, size) != code_before(function.start, size):
                problems.append(f"{function.name}: the patched source is assembled to other code")
    extents = tuple(
        (starts[one.name], starts[one.name] + one.end - one.start) for one in functions if one.name in starts
    )
    found = check_elf(made, None, Plan(code=True, why_unknown=True, only=extents))
    counts = found.counts[DWARF]
    problems += [
        f"{made.function_name(one.address)}: {one.what}: {one.rule}, by the code {one.code}" for one in found.findings
    ]
    problems += [
        f"{made.function_name(one.address)}: not proved for {counted(one.instructions, 'instruction')}: {one.why}"
        for one in found.unknown
    ]
    return set(starts), Proof(len(starts), counts.proved, problems)


def _start(before: ElfBinary, made: ElfBinary, address: int) -> int | None:
    """Return the address at which an assembled file has the symbol and offset of an address; ``None``: it has none."""
    found = before.symbols.find(address)
    addresses = [] if found is None else made.symbols.addresses(found[0].name)
    return None if found is None or not addresses else addresses[0] + found[1]
