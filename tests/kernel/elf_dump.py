"""An ELF crash dump of the kernel in :mod:`tests.kernel.fake_dump`, which drgn can open."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.elf import opened
from tests.elf.objects import run, tools_for
from tests.kernel.fake_dump import MOVED, Dump, build_kernel, waiting
from tests.samples.catalogue import ABIS

_TYPES = """
struct list_head { struct list_head *next, *prev; };
struct cpu_context { unsigned long x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, fp, sp, pc; };
struct thread_struct { struct cpu_context cpu_context; };
struct signal_struct { unsigned long other[2]; struct list_head thread_head; } *signals;
struct task_struct {
    unsigned int __state, exit_state, on_cpu, pid;
    char comm[16];
    struct list_head tasks, thread_node;
    struct signal_struct *signal;
    unsigned long other[7];
    struct thread_struct thread;
} *task;
struct pt_regs {
    union { struct { unsigned long regs[31], sp, pc, pstate; }; };
    unsigned long other[4], stackframe[2];
} *registers;
"""
"""C: the structures of :mod:`tests.kernel.fake`, with the same offsets."""
_INITIAL = '.section .init.text, "ax"\nnop\n'
"""Assembly: drgn takes a file for the kernel's only if it has this section."""
_PLACES = ("-Ttext=0xffffffc008010000", "-Tdata=0xffffffc009000000", "--section-start=.init.text=0xffffffc008800000")

_HEADER, _SEGMENT, _NOTE = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ"), struct.Struct("<III")
_ET_CORE, _EM_AARCH64, _PT_LOAD, _PT_NOTE = 4, 183, 1, 4
_IDENT = b"\x7fELF\2\1\1"
"""64 bits, little-endian, version 1."""


class ElfDump(NamedTuple):
    """The files of a dump, and the same memory without drgn."""

    vmcore: Path
    vmlinux: Path
    memory: Dump


def write_dump(folder: Path) -> ElfDump:
    """Write the dump of a kernel with two tasks: a thread of the kernel, and a process that ran on a processor."""
    types, initial = folder / "types.c", folder / "initial.s"
    types.write_text(_TYPES, encoding="ascii")
    initial.write_text(_INITIAL, encoding="ascii")
    objects = types.with_suffix(".o"), initial.with_suffix(".o")
    run(ABIS["aarch64"].compiler, "-g", "-ffreestanding", "-c", types, "-o", objects[0])
    run(tools_for("aarch64", 3) / "as", initial, "-o", objects[1])
    vmlinux = build_kernel(folder, *objects, options=("--build-id", *_PLACES))
    memory = Dump(vmlinux)
    memory.listed(waiting(memory, 0, "worker", "ret_from_fork"), memory.task(1, "task1", on_cpu=True, sp=0, pc=0, fp=0))
    vmcore = folder / "vmcore"
    vmcore.write_bytes(_content(memory, vmlinux))
    return ElfDump(vmcore, vmlinux, memory)


def _content(memory: Dump, vmlinux: Path) -> bytes:
    note = _vmcore_info(vmlinux)
    pieces = list(memory.memory.pieces())
    header = (_IDENT.ljust(16, b"\0"), _ET_CORE, _EM_AARCH64, 1, 0, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size)
    content = bytearray(_HEADER.pack(*header, 1 + len(pieces), 0, 0, 0))
    at = len(content) + _SEGMENT.size * (1 + len(pieces))
    content += _SEGMENT.pack(_PT_NOTE, 0, at, 0, 0, len(note), len(note), 4)
    at += len(note)
    for start, data in pieces:
        content += _SEGMENT.pack(_PT_LOAD, 0, at, start, start & 0xFFFFFFFFFF, len(data), len(data), 1)
        at += len(data)
    return bytes(content) + note + b"".join(data for _, data in pieces)


def _vmcore_info(vmlinux: Path) -> bytes:
    """Return the note VMCOREINFO, with the values that drgn needs."""
    with opened(str(vmlinux)) as binary:
        build_id = binary.build_id
    text = f"OSRELEASE=6.1.0\nBUILD-ID={build_id}\nPAGESIZE=4096\nSYMBOL(swapper_pg_dir)=ffffffc049000000\n"
    text += f"KERNELOFFSET={MOVED:x}\nNUMBER(VA_BITS)=39\nNUMBER(TCR_EL1_T1SZ)=25\n"
    data = text.encode("ascii")
    return _NOTE.pack(11, len(data), 0) + b"VMCOREINFO\0\0" + data.ljust(len(data) + 3 & ~3, b"\0")
