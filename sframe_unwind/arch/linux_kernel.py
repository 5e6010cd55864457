"""What the stack of a Linux kernel has besides functions, as an architecture's entry code makes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Callable, NamedTuple


class PlaceKind(Enum):
    """What unwinding does at a place in entry code, which has neither SFrame rows nor DWARF CFI."""

    EXCEPTION = "exception"
    """An exception interrupted kernel code.  Its registers are in ``struct pt_regs`` at SP."""
    STACK_SWITCH = "stack switch"
    """The function called another one on another stack.  The frame pointer leads to the record on the old stack."""
    FUNCTION = "function"
    """A function in assembly without CFI, which ORC describes; also outside of entry code."""
    USER_ENTRY = "entry from user space"
    """The outermost frame: an exception or system call interrupted user space."""
    TASK_START = "start of the task"
    """The outermost frame: a task, or a processor, begins here."""
    LEAF = "leaf function"
    """A function in assembly without CFI that changes neither SP nor the register with the return address."""
    PARTLY_SAVED = "an exception of which not all registers are saved yet, or still"
    """The innermost frame, on the way in or out.  Where the interrupted function is, only system registers say."""


class EntryCode(NamedTuple):
    """A function in assembly, and the calls in it whose frames need more than a row."""

    function: str
    """Its symbol."""
    callee: str
    """Symbol of the function that it calls there; empty: each call in the function counts."""
    kind: PlaceKind


class Passage(NamedTuple):
    """Entry code without calls that need more than a row: on the way in or out."""

    function: str
    """Its symbol."""
    kind: PlaceKind
    offset: int = 0
    """Where it begins in the function, in bytes."""
    size: int = 0
    """In bytes; 0: up to the instruction that returns, from the exception or the function."""
    is_absolute: bool = False
    """It begins at the address :attr:`offset`, and no symbol says so."""


class StackSwitch(NamedTuple):
    """Calls in C code of a function on another stack, found by their code: the compiler's CFI is wrong there."""

    code: re.Pattern[bytes]
    """The call and the instructions around it.  The group ``call`` is the call."""
    kind: PlaceKind
    """``STACK_SWITCH``, or ``TASK_START`` where the other stack has no caller."""
    saves: re.Pattern[bytes] | None = None
    """The instruction further up that saves the frame pointer, else the place is left out; ``None``: it need not
    be saved."""


class BackChain(NamedTuple):
    """The structure at the SP of each function.

    Where a function is called on another stack, it leads to the caller's caller.
    """

    structure: str
    """Its tag."""
    pointer: str
    """The member that is the SP of the caller's caller."""
    registers: Mapping[int, str]
    """Maps frame pointer and pc to their members of that frame's structure."""


class SwitchFrame(NamedTuple):
    """What a task that does not run has at its SP: its registers, with its pc."""

    structure: str
    """Tag of the structure."""
    pointer: str
    """The member of ``struct task_struct`` that is SP, and points to the structure."""
    registers: Mapping[int, str]
    """Maps a register to its member of the structure.  SP is the structure's end if it is not among them."""


class LinuxKernel(NamedTuple):
    """Facts of the Linux kernel on one architecture.  Offsets are not among them: debug information has those.

    Members of structures are named by paths such as ``thread.cpu_context.pc``; a number is an index of an array.
    """

    entry_code: tuple[EntryCode, ...]
    passages: tuple[Passage, ...]
    """Besides those of :attr:`entry_code` up to a call."""
    saved_registers: Mapping[int, str]
    """Maps a register to its member of ``struct pt_regs``."""
    frame_record: str
    """The member of ``struct pt_regs`` that is a frame record.  The frame pointer points to it in entry code.  Empty:
    it has none."""
    task_registers: Mapping[int, str]
    """Maps a register to its member of ``struct task_struct``, where it is saved while the task does not run."""
    ends_function: Callable[[bytes], bool]
    """``(an instruction)``: returns whether it returns or jumps away unconditionally."""
    ends_exception: Callable[[bytes], bool]
    """``(an instruction)``: returns whether it returns from an exception."""
    goes_on: Callable[[int, int], tuple[int, ...] | None] | None = None
    """``(instruction, address)``: returns the addresses of the instructions that can follow one that leaves SP, frame
    pointer and link register alone; empty: it returns.  ``None`` for all others, and where the code is not decoded."""
    switch_frame: SwitchFrame | None = None
    """Where a task's registers are that are not in ``struct task_struct``."""
    user_mode: tuple[str, int] | None = None
    """A member of ``struct pt_regs``, and its bits of which one is set where an exception interrupted user space.
    ``None``: there is separate entry code for that."""
    below_registers: str = ""
    """Tag of the structure between SP and ``struct pt_regs``; empty: there is none."""
    returns_itself: bool = False
    """The function that saves the registers of an exception also returns from it."""
    stack_switches: tuple[StackSwitch, ...] = ()
    back_chain: BackChain | None = None
    """``None``: the frame pointer leads from a stack to the one before."""
    lowest_code: int = 1 << 63
    """Below this address there is no code of the kernel."""
