"""Recordings of programs that an emulator runs by single steps: perf does not run there.

Each sample has the registers and the stack that the kernel would have copied at that instruction.  GDB's stack of the
same stop is kept beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import ARCHES
from tests.abis.debuggers import described, newest, sysroot
from tests.expectations import Stop
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.perf.registers import RECORDED, SP
from tests.perf.writer import Event, Writer

_PAGE = 4096
_EXECUTABLE = 1
"""``PF_X``."""


class Stepped(NamedTuple):
    """A recording, and the stacks that GDB shows at the same stops."""

    recording: bytes
    stacks: list[tuple[int, ...]]
    """The pcs of the frames of each sample, from the innermost outward."""
    plt: range
    """The program's procedure linkage table; empty: it has none."""


class Steps(NamedTuple):
    """The settings of a stepped program."""

    sample: str
    place: str
    arguments: tuple[str, ...] = ()
    every: int = 1
    most: int = 200
    copy: int = 16384


def stepped(steps: Steps, abi: str, variant: str = "O2") -> Stepped:
    """Step a program of an ABI, and write a recording of it."""
    path = built(steps.sample, abi, 3, variant)
    stop = Stop(steps.sample, (), steps.arguments, steps.place)
    numbered = {str(number): name for number, name in RECORDED[abi].items()}
    told: dict[str, Any] = call(
        newest(abi),
        "tests.perf.inside.stepping.step",
        program={**described(stop, path, abi), "sysroot": sysroot(abi)},
        registers={**numbered, "sp": SP[abi]},
        copy=steps.copy,
        every=steps.every,
        most=steps.most,
    )
    (arch,) = (arch for arch in ARCHES if arch.name == abi)
    writer = Writer(arch.byteorder, arch.uname, [Event(regs_user=sum(1 << number for number in RECORDED[abi]))])
    writer.comm(1, path.name, is_exec=True)
    texts = {file or str(path): start for start, _, section, file in told["sections"] if section == ".text"}
    for file, text in texts.items():
        _map(writer, Path(file), text)
    for time, sample in enumerate(told["samples"], 1):
        registers = {int(number): value for number, value in sample["registers"].items()}
        stack = bytes.fromhex(sample["stack"])
        writer.sample(1, sample["pcs"][0], registers, stack, size=steps.copy, time=time)
    plt = next(
        (range(start, end) for start, end, section, file in told["sections"] if (section, file) == (".plt", "")),
        range(0),
    )
    return Stepped(writer.file(), [tuple(sample["pcs"]) for sample in told["samples"]], plt)


def _map(writer: Writer, path: Path, text: int) -> None:
    """Map the code of a file as the loader does.

    :param text: address of its section ``.text``.
    """
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        bias = text - elf.get_section_by_name(".text")["sh_addr"]
        for segment in elf.iter_segments("PT_LOAD"):
            if segment["p_flags"] & _EXECUTABLE:
                start, end = segment["p_vaddr"] & -_PAGE, segment["p_vaddr"] + segment["p_memsz"]
                size = (end - start + _PAGE - 1) & -_PAGE
                writer.mmap2(1, bias + start, size, segment["p_offset"] & -_PAGE, str(path))
