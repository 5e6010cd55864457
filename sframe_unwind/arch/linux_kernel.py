"""The frames on a Linux kernel's stack that an architecture's entry code makes, besides those of functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Callable

from sframe_unwind.named_tuple import NamedTuple


class PlaceKind(Enum):
    """The way of unwinding at a place in entry code, which has neither SFrame rows nor DWARF CFI."""

    EXCEPTION = "exception"
    """An exception interrupted kernel code.  Its registers are in ``struct pt_regs`` at SP."""
    STACK_SWITCH = "stack switch"
    """The function called another one on another stack.  The frame pointer leads to the record on the old stack."""
    FUNCTION = "function"
    """An assembly function without CFI that ORC describes; also outside of entry code."""
    USER_ENTRY = "entry from user space"
    """The outermost frame: an exception or system call interrupted user space."""
    TASK_START = "start of the task"
    """The outermost frame: a task, or a processor, begins here."""
    LEAF = "leaf function"
    """An assembly function without CFI that changes neither SP nor the register with the return address."""
    PARTLY_SAVED = "an exception of which not all registers are saved yet, or still"
    """The innermost frame, in code before or after the registers are saved.  Only system registers have the interrupted
    pc then."""


class EntryCode(NamedTuple):
    """An assembly function, and the calls in it whose frames need more than a row."""

    function: str
    """Symbol of the function."""
    callee: str
    """Symbol of the function that it calls there; empty: each call in the function counts."""
    kind: PlaceKind


class Passage(NamedTuple):
    """Entry code before or after the registers are saved, without calls that need more than a row."""

    function: str
    """Symbol of the function."""
    kind: PlaceKind
    offset: int = 0
    """Its start in the function, in bytes."""
    size: int = 0
    """Its size in bytes; 0: it ends with the instruction that returns from the exception or the function."""
    is_absolute: bool = False
    """Whether :attr:`offset` is its address; no symbol has it."""


class StackSwitch(NamedTuple):
    """Calls in C code of a function on another stack, found by their code: the compiler's CFI is wrong there."""

    code: re.Pattern[bytes]
    """The call and the instructions around it.  The group ``call`` is the call."""
    kind: PlaceKind
    """``STACK_SWITCH``, or ``TASK_START`` if the other stack has no caller."""
    saves: re.Pattern[bytes] | None = None
    """The earlier instruction that saves the frame pointer; without it, the place is left out.  ``None``: the frame
    pointer need not be saved."""


class BackChain(NamedTuple):
    """The structure at the SP of each function.

    If a function is called on another stack, the structure leads to the caller's caller.
    """

    structure: str
    """Tag of the structure."""
    pointer: str
    """The member that is the SP of the caller's caller."""
    registers: Mapping[int, str]
    """Maps frame pointer and pc to their members of that frame's structure."""


class SwitchFrame(NamedTuple):
    """The data at the SP of a task that is not running: its registers, including its pc."""

    structure: str
    """Tag of the structure."""
    pointer: str
    """The member of ``struct task_struct`` that is SP, and points to the structure."""
    registers: Mapping[int, str]
    """Maps a register to its member of the structure.  If SP is not among them, it is the structure's end."""


class Alternatives(NamedTuple):
    """Instructions of 4 bytes that the kernel replaces by others when it starts; ``struct alt_instr`` has 12 bytes."""

    nop: int
    """The instruction without an effect."""
    jump: Callable[[int], int | None]
    """``(instruction)``: returns the distance in bytes that an unconditional jump has; ``None``: it is none."""


class LinuxKernel(NamedTuple):
    """Facts of the Linux kernel on one architecture, without offsets: these are in the debug information.

    Members of structures are named by paths such as ``thread.cpu_context.pc``; a number is an index of an array.
    """

    entry_code: tuple[EntryCode, ...]
    passages: tuple[Passage, ...]
    """Passages besides those of :attr:`entry_code` up to a call."""
    saved_registers: Mapping[int, str]
    """Maps a register to its member of ``struct pt_regs``."""
    frame_record: str
    """The member of ``struct pt_regs`` that is a frame record.  The frame pointer points to it in entry code.  Empty:
    it has none."""
    task_registers: Mapping[int, str]
    """Maps a register to its member of ``struct task_struct``, where it is saved while the task is not running."""
    ends_function: Callable[[bytes], bool]
    """``(an instruction)``: returns whether it returns or jumps away unconditionally."""
    ends_exception: Callable[[bytes], bool]
    """``(an instruction)``: returns whether it returns from an exception."""
    goes_on: Callable[[int, int], tuple[int, ...] | None] | None = None
    """``(instruction, address)``: returns the addresses of the instructions that can follow one that leaves SP, frame
    pointer and link register alone; empty: it returns.  ``None`` for all others, and where the code is not decoded."""
    switch_frame: SwitchFrame | None = None
    """The place of those registers of a task that are not in ``struct task_struct``."""
    user_mode: tuple[str, int] | None = None
    """A member of ``struct pt_regs``, and a mask: at least one of these bits is set if an exception interrupted user
    space.  ``None``: there is separate entry code for that."""
    below_registers: str = ""
    """Tag of the structure between SP and ``struct pt_regs``; empty: there is none."""
    returns_itself: bool = False
    """The function that saves the registers of an exception also returns from it."""
    stack_switches: tuple[StackSwitch, ...] = ()
    back_chain: BackChain | None = None
    """``None``: the frame pointer leads from a stack to the previous one."""
    vmcore_info: int | None = None
    """Physical address of a pointer to the note VMCOREINFO, for dumps without the note; ``None``: all dumps have it."""
    alternatives: Alternatives | None = None
    """``None``: their layout is not known."""
    lowest_code: int = 1 << 63
    """The lowest address at which the kernel can have code."""
