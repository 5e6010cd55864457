"""Executes a function in QEMU along paths of its control flow, independent of the conditions of its branches.

Calls are left out, and registers that a call need not preserve get random values.  Instructions that fault are left out
too, because most pointers of a function that is entered with random registers are invalid; and also instructions that
store a number of bytes given by a register.  QEMU executes all others, so the values do not depend on any claim.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from lab.code.executed.judge import Entered
from lab.code.executed.stub import Stopped, Stub
from lab.code.paths import Edge, paths, reached
from sframe_unwind import unwind_rule
from sframe_unwind.code.decode.instruction import PC_RELATIVE, Instruction, Kind
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run
from sframe_unwind.code.interpret.walk import walk
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

_MASK = (1 << 64) - 1
_UNSIGNED = (1 << 47) - 1
"""The bits of an address that signing leaves unchanged."""
_STACK, _DATA = 0x40000, 0x80000
"""Places of a function's stack and data, in bytes below the stack pointer with which the program starts."""
_WINDOW, _DATA_SIZE = 0x2000, 0x1000
_JUMPS = 2
"""Number of jumps with unknown targets that are tried as ways to a block without a known predecessor."""
_RED_ZONE = 128
"""Number of bytes below the stack pointer that are overwritten in place of a call."""


class Question(NamedTuple):
    """The question whether a rule gives a value."""

    what: str
    """``cfa``, ``ra`` or ``fp``."""
    rule: UnwindRule


Answers = dict[tuple[int, Question], bool]
"""Answers by the address of an instruction."""


class Forced:
    """The functions of one executable.

    :param folder: folder for a copy of it that needs no dynamic linker.
    :raises ToolchainUnavailable: there is no emulator.
    """

    def __init__(self, path: Path, interpreter: Interpreter, folder: Path) -> None:
        self._all = interpreter
        self._machine = interpreter.machine
        self._arch = self._machine.arch
        copy = folder / path.name
        entry = _without_interpreter(path, copy)
        self._stub = Stub(self._arch.name, copy)
        begun = self._stub.stopped()
        self._moved = begun.pc - entry
        sp = begun.registers[self._arch.sp] & -64
        self._stack, self._data = sp - _STACK, sp - _DATA

    def __enter__(self) -> Forced:
        return self

    def __exit__(self, *_: object) -> None:
        self._stub.close()

    def answers(
        self, run: Run, entries: Collection[int], wanted: Mapping[int, Collection[Question]], seed: int
    ) -> Answers:
        """Answer questions about instructions of an interpreted function, on paths through all of it.

        :param entries: addresses at which the function is entered.
        :param wanted: questions by the address of the instruction.
        :param seed: seed for the choice of paths, and for the state at the entry.
        """
        random_, found = random.Random(seed), Answers()
        addresses = {block: [pc for pc, _ in walk(self._all, run, block)] for block in run.states}
        chosen = {block for block, pcs in addresses.items() if not wanted.keys().isdisjoint(pcs)}
        edges = [*_edges(run)]
        edges += self._guessed(run, reached(edges, entries), random_)
        for path in paths(edges, entries, chosen, random_):
            entered = self._enter(path[0].block, random_)
            for block, leaving in path:
                self._stub.assign(None, block + self._moved)
                for pc in addresses[block]:
                    for question in wanted.get(pc, ()):
                        given = self._gives(question, entered)
                        found[pc, question] = found.get((pc, question), True) and given
                    self._execute(pc, random_)
                    if pc == leaving:
                        break
        return found

    def _guessed(self, run: Run, known: Collection[int], random_: random.Random) -> Iterator[Edge]:
        """Yield edges to the blocks without a known predecessor, each from some of the jumps that may lead there.

        :param known: the blocks to which edges are known to lead.
        """
        jumps = []
        for block in sorted(known):
            pc, state = deque(walk(self._all, run, block), maxlen=1).pop()
            instruction = self._all.sweep_at(pc).instruction(pc)
            is_open = instruction.target is not None and instruction.target[0] != PC_RELATIVE
            if instruction.kind is Kind.JUMP and is_open and not self._all.frame.is_entry(state):
                jumps.append((block, pc))
        for block in sorted(run.guessed - set(known)):
            yield from (Edge(*jump, block) for jump in random_.sample(jumps, min(len(jumps), _JUMPS)))

    def _enter(self, start: int, random_: random.Random) -> Entered:
        machine, arch, stub = self._machine, self._arch, self._stub
        order = arch.byteorder

        def pointer() -> int:
            return self._data + random_.randrange(_DATA_SIZE // 16) * 8

        registers = [pointer() for _ in machine.general]
        registers[arch.fp] = random_.getrandbits(64)
        sp = registers[arch.sp] = self._stack + random_.randrange(64) * 16 + machine.sp_at_entry % 16
        return_address = random_.getrandbits(46)
        stub.write(self._data, b"".join(pointer().to_bytes(8, order) for _ in range(_DATA_SIZE // 8)))
        stub.write(self._stack - _WINDOW, random_.randbytes(2 * _WINDOW))
        if arch.ra is None:
            stub.write(sp, return_address.to_bytes(8, order))
        else:
            registers[arch.ra] = return_address
        stub.place(Stopped(start + self._moved, tuple(registers)))
        stub.fill_floating(random_)
        return Entered(sp - machine.sp_at_entry & _MASK, return_address, registers[arch.fp])

    def _execute(self, pc: int, random_: random.Random) -> None:
        """Execute an instruction; continue after it, wherever it leads."""
        instruction = self._all.sweep_at(pc).instruction(pc)
        if instruction.kind is Kind.CALL and not _is_local(instruction, self._all, pc):
            self._call(random_)
        elif instruction.kind is Kind.SYSTEM:
            for number in self._machine.system_call_results:
                self._stub.assign(number, random_.getrandbits(64))
        elif instruction.kind not in (Kind.TRAP, Kind.STOP) and _is_short(instruction):
            self._stub.step()
        self._stub.assign(None, pc + instruction.size + self._moved)

    def _call(self, random_: random.Random) -> None:
        """Change the registers that a call need not preserve."""
        machine, arch = self._machine, self._arch
        for number in machine.general:
            if number not in machine.preserved and number != arch.sp:
                self._stub.assign(number, random_.getrandbits(64))
        sp = self._stub.stopped().registers[arch.sp]
        first, end = machine.callee_area
        if abs(sp - self._stack) < _WINDOW:
            self._stub.write(sp - _RED_ZONE, random_.randbytes(_RED_ZONE))
            self._stub.write(sp + first, random_.randbytes(end - first))

    def _gives(self, question: Question, entered: Entered) -> bool:
        what, rule = question
        at, arch = self._stub.stopped(), self._arch
        if what == "cfa":
            return rule.cfa is not None and self._value(rule.cfa, at, entered) == entered.cfa
        if what == "fp":
            return self._value(rule.fp or RegisterRule(arch.fp, 0, False), at, entered) == entered.fp
        if rule.ra is None and arch.ra is None:
            return False
        value = self._value(rule.ra or RegisterRule(arch.ra or 0, 0, False), at, entered)
        if rule.ra_signed:
            return value is not None and value != entered.ra and value & _UNSIGNED == entered.ra
        return value == entered.ra

    def _value(self, rule: RegisterRule, at: Stopped, entered: Entered) -> int | None:
        """Return the value of a rule, relative to the right CFA."""
        base, offset, in_memory = rule
        if base == unwind_rule.CFA:
            value = entered.cfa
        elif base < len(at.registers):
            value = at.registers[base]
        else:
            value = self._stub.floating(base)
        value = value + offset & _MASK
        if not in_memory:
            return value
        raw = self._stub.read(value, 8)
        return int.from_bytes(raw, self._arch.byteorder) if len(raw) == 8 else None


def _edges(run: Run) -> Iterator[Edge]:
    """Yield the edges between the blocks of an interpreted function."""
    for block, sources in sorted(run.sources.items()):
        yield from (Edge(*source, block) for source in sorted(sources))


def _without_interpreter(path: Path, copy: Path) -> int:
    """Copy an executable without its request for a dynamic linker; return its entry point."""
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        for number in range(elf.num_segments()):
            if elf.get_segment(number)["p_type"] == "PT_INTERP":
                at = elf["e_phoff"] + number * elf["e_phentsize"]
                data[at : at + 4] = bytes(4)  # PT_NULL
        entry = int(elf["e_entry"])
    copy.write_bytes(data)
    copy.chmod(0o755)
    return entry


def _is_short(instruction: Instruction) -> bool:
    """Return whether no register decides how many bytes an instruction stores; random sizes would take very long."""
    return all(isinstance(size, int) for _, size, _ in instruction.stores)


def _is_local(instruction: Instruction, interpreter: Interpreter, pc: int) -> bool:
    """Return whether a call leads to a place in its own function, which code does to find its own address."""
    target = instruction.target
    if target is None or target[0] != PC_RELATIVE:
        return False
    function = interpreter.sweep_at(pc).function
    return function.start < pc + int(target[1]) < function.end
