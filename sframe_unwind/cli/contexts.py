"""The options of ``backtrace`` that name a context that does not run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Callable

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import ContextError
from sframe_unwind.process.stacks import jump_buffer
from sframe_unwind.process.target import Target
from sframe_unwind.unwind.saved_context import SavedContext, assignments, from_registers, from_ucontext

if TYPE_CHECKING:  # a command needs one of them
    from sframe_unwind.process.core_file import Core
    from sframe_unwind.process.live import Live

FindContext = Callable[[Target], SavedContext]
"""Reads the context in a target; raises ContextError if there is none."""


def add_context_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options, each of which selects a context in place of all threads."""
    group = parser.add_argument_group("contexts that do not run, such as fibers, in place of the threads")
    options = group.add_mutually_exclusive_group()
    options.add_argument(
        "--regs", metavar="REG=N,...", help="its registers: pc=N,sp=N,fp=N[,lr=N], and others by their names"
    )
    options.add_argument("--ucontext", metavar="ADDRESS", type=_address, help="the ucontext_t at an address")
    options.add_argument("--jmpbuf", metavar="ADDRESS", type=_address, help="the jmp_buf or sigjmp_buf at an address")


def wanted_context(options: argparse.Namespace, source: Core | Live) -> FindContext | None:
    """Return a function that reads the context that the user names; ``None``: the stacks of the threads are wanted.

    :raises ContextError: the registers have another form.
    """
    if options.ucontext is not None:
        return lambda target: from_ucontext(target.arch, options.ucontext, target.read)
    if options.jmpbuf is not None:
        return lambda target: jump_buffer(options.jmpbuf, target, source.auxv)
    if options.regs is not None:
        registers = _registers(options.regs, source.arch)
        return lambda target: from_registers(target.arch, registers, target.read)
    return None


def names_context(options: argparse.Namespace) -> bool:
    """Return whether one of the options is given."""
    return any(value is not None for value in (options.regs, options.ucontext, options.jmpbuf))


def _address(text: str) -> int:
    try:
        return int(text, 0) & ADDRESS_MASK
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: not an address, as 4096 or 0x1000") from None


def _registers(text: str, arch: Arch) -> dict[int, int]:
    """Return registers by DWARF number.

    :raises ContextError: they have another form.
    """
    registers = {}
    for number, value in assignments(arch, text).items():
        try:
            registers[number] = int(value, 0) & ADDRESS_MASK
        except ValueError:
            raise ContextError(f"--regs: {value!r} is not a number") from None
    return registers
