"""The code of one file, of which single functions are interpreted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.code.decode.instruction import Kind, jumps
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.direct_calls import called_before, possible_targets
from sframe_unwind.code.image.elf_image import exception_tables, image_of
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.image.stored_pointers import stored_pointers
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.judgement import Judge
from sframe_unwind.code.judge.one_address import lifter_of
from sframe_unwind.code.rows.entered_within import rules_elsewhere
from sframe_unwind.code.rows.extents import Extents
from sframe_unwind.code.rows.function import FoundRule, Rows, joined
from sframe_unwind.code.rows.starts import Finder
from sframe_unwind.code.rows.whole_file import agreeing, followed, run_with_rules
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.reader import open_file
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import FileError
from sframe_unwind.unwind_rule import UnwindRule

MAX_SIZE = 1 << 16
"""Maximum size in bytes of a function that is interpreted while a user waits; this size takes about a second."""
_MAX_STEPS = 100_000
"""Maximum number of executed instructions for one function."""
_MOST_FOLLOWED = 6_000
"""Maximum number of instructions that are followed to find the functions of a file; this takes about half a second."""
_ROOM = 1 << 12
"""Number of bytes after the code to which direct jumps lead; jumps by tables may lead there."""
_MOST_TAILS = 64
"""Maximum number of functions to which one leads by tail calls, as far as they are followed."""
_WINDOW = MAX_SIZE
"""Number of bytes whose possible starts of functions are looked for together."""
_COLD = ".cold"
"""Part of the names that compilers give to the unlikely part of a function, which is entered with its frame."""


class FileCode:
    """The code of one file.

    :param path: path of the file; it stays open as long as this object exists.
    :param symbols: the symbols of its separate debug file; ``None``: those of the file.
    :raises SFrameError: the file cannot be read, or is damaged.
    """

    def __init__(self, path: str, symbols: Symbols | None) -> None:
        binary = ElfBinary(open_file(path), path)
        self.arch = binary.arch
        machine = MACHINES.get(self.arch.name)
        if machine is None:
            raise FileError(f"{path}: code of {self.arch.name} is not interpreted")
        self._machine, self._lifter = machine.for_any_caller(), lifter_of(self.arch.name)
        self._binary = binary
        self.image = image_of(binary, machine)
        self._symbols = binary.symbols if symbols is None else symbols
        self.extents = Extents(binary, self.image, self._symbols)
        self._landing_pads = exception_tables(binary, self.image)
        self._interpreter = self._with(self.extents.ranges)
        self._windows: dict[int, list[int]] = {}
        self._finder: Finder | None = None
        self._followed: list[CodeRange] = []
        self._unfollowed: list[CodeRange] = []
        """The functions that tables name, as far as they are not followed yet; the next one is the last."""
        self._before_next: dict[int, CodeRange] = {}
        self._leads_to: dict[int, frozenset[int]] = {}

    def _with(self, ranges: CodeRanges) -> Interpreter:
        return Interpreter(
            image=self.image,
            machine=self._machine,
            lifter=self._lifter,
            ranges=ranges,
            landing_pads=self._landing_pads,
            max_steps=_MAX_STEPS,
        )

    def rows(self, function: CodeRange) -> list[Rows]:
        """Return the rows of a function that a table names; none: nothing is known."""
        parents = list(self._parents(function))
        found: dict[int, FoundRule | None] = {}
        for parent in parents:
            followed(self._interpreter, Judge(self._interpreter.frame), parent, found)
        own = {pc: rule for pc, rule in found.items() if function.start <= pc < function.end}
        is_entered = not parents or (not own and any(function.start in self.leads_to(one.start) for one in parents))
        if is_entered:
            own = followed(self._interpreter, Judge(self._interpreter.frame), function, {})
            own = self._agreeing(own, function)
        return joined(self._interpreter, *function, own)

    def _agreeing(self, own: dict[int, FoundRule | None], function: CodeRange) -> dict[int, FoundRule | None]:
        """Return the rules of a function that are the same for all ways into it that are known."""
        led_to = map(self.extents.ranges.find, self._jumps_out(function.start))
        parts = frozenset(part for part in led_to if part is not None)
        elsewhere = rules_elsewhere(self._interpreter, function, parts, MAX_SIZE)
        return {} if elsewhere is None else agreeing(own, elsewhere)

    def rows_of_found(self, function: CodeRange, returns: bool = False) -> list[Rows]:
        """Return the rows of a function that no table names; none: nothing is known.

        Its end is not certain: after a call that does not return, another function may follow.  Then some path leaves
        it with a stack pointer, a frame pointer or a return address that is not the caller's.

        :param returns: it has rows only if some path leads to a return.  Where the start may be a label in another
            function, that shows that no frame was there at the start: a jump may lead back into the function.
        """
        interpreter = self._with(CodeRanges([*self._known(), function]))
        run, found = run_with_rules(interpreter, Judge(interpreter.frame), function)
        if (run.stack_pointers_at_end and not run.ends_as_entered) or (returns and not run.stack_pointers_at_return):
            return []
        return joined(interpreter, *function, found)

    def rule_of_plt_header(self, address: int) -> UnwindRule | None:
        """Return the rule in the header of a procedure linkage table, which only its stubs lead to; ``None``: none."""
        plt = self.image.plt(address)
        section = self.image.section(address)
        if plt is None or section is None or address >= plt.first:
            return None
        header = self.arch.plt_stub(section.contents[plt.start - section.start : plt.first - section.start])
        return header.rule(address - plt.start) if header is not None and header.is_header else None

    def _known(self) -> Iterator[CodeRange]:
        ranges = self.extents.ranges
        return map(ranges.__getitem__, range(len(ranges)))

    def _parents(self, function: CodeRange) -> Iterator[CodeRange]:
        """Yield the functions that a compiler split some code off, by the name of its symbol."""
        symbol = self._symbols.find(function.start)
        if symbol is None or symbol[1] or _COLD not in symbol[0].name:
            return
        for start in self._symbols.addresses(symbol[0].name.partition(_COLD)[0]):
            parent = self.extents.ranges.find(start)
            if parent is not None and parent.start == start and parent.end - start <= MAX_SIZE:
                yield parent

    def pointed_to(self, address: int) -> Iterator[int]:
        """Yield the starts of code before an address that data of the file holds, and no table names; nearest first."""
        pointers = self._stored_pointers
        for at in range(bisect_right(pointers, address) - 1, -1, -1):
            start = pointers[at]
            if start <= address - MAX_SIZE:
                return
            if start % self.arch.instruction_unit == 0 and self.extents.find(start) is None:
                yield start

    @cached_property
    def _stored_pointers(self) -> Sequence[int]:
        return stored_pointers(self.image)

    def target_before(self, return_address: int) -> int | None:
        """Return the function of this file that the direct call before an address calls; ``None``: there is none.

        A stub of the file's procedure linkage table stands for the function whose address it loads.
        """
        target = called_before(self.image, self.arch, return_address)
        if target is None or self.image.plt(target) is None:
            return target
        stub = self._binary.stubs.find(target)
        found = [] if stub is None else self._symbols.addresses(stub[0].name.removesuffix("@plt"))
        return found[0] if len(found) == 1 else None

    def before_next(self, start: int) -> CodeRange:
        """Return the code from a start to where another function may begin, or to the end of the section.

        If it is cut too early, for something that only looks like a call, less of the function is known.
        """
        known = self._before_next.get(start)
        if known is None:
            known = self._before_next[start] = CodeRange(start, self._next_or_end(start))
        return known

    def _next_or_end(self, start: int) -> int:
        section = self.image.section(start)
        end = min(start + MAX_SIZE, start if section is None else section.end, self.extents.next_start(start))
        for window in range(start // _WINDOW, end // _WINDOW + 1):
            targets = self._possible_starts(window)
            following = bisect_right(targets, start)
            if following < len(targets):
                end = min(end, targets[following])
                break
        if start == self.image.entry_point:
            return self._end_of_entry(start, end)
        return self._around_reached(start, end)

    def _end_of_entry(self, start: int, end: int) -> int:
        """Return the end of the code at the entry point, which does not return.

        It ends with a jump, a trap, or the call of a function that does not return.
        """
        code = self._code(start, end)
        pc = start
        while pc < end:
            instruction = self._lifter.instruction(code, pc - start)
            pc += max(instruction.size, 1)
            called = called_before(self.image, self.arch, pc) if instruction.kind is Kind.CALL else None
            if instruction.kind not in (Kind.NEXT, Kind.CALL, Kind.SYSTEM) or called in self.image.not_returning:
                break
        return min(pc, end)

    def _code(self, start: int, end: int) -> bytes:
        section = self.image.section(start)
        return b"" if section is None else section.contents[start - section.start : end - section.start]

    def _around_reached(self, start: int, end: int) -> int:
        """Return an address some way after the last instruction before an end to which direct jumps lead from a start.

        So not all code up to the next function has to be decoded, which may be far away.
        """
        code = self._code(start, end)
        waiting, seen, last = [start], set[int](), start
        while waiting and len(seen) < _MOST_FOLLOWED:
            pc = waiting.pop()
            if pc in seen or not start <= pc < end:
                continue
            seen.add(pc)
            instruction = self._lifter.instruction(code, pc - start)
            last = max(last, pc + instruction.size)
            waiting += [pc + distance for distance in jumps(instruction)]
            if instruction.size and instruction.kind not in (Kind.JUMP, Kind.RETURN, Kind.TRAP, Kind.STOP):
                waiting.append(pc + instruction.size)
        return min(end, last + _ROOM)

    def _possible_starts(self, window: int) -> list[int]:
        """Return where functions may begin in a window, by the calls in and around it."""
        if window not in self._windows:
            start, end = window * _WINDOW, (window + 1) * _WINDOW
            found = possible_targets(self.image, self.arch, start - _WINDOW, end + _WINDOW)
            self._windows[window] = [target for target in found if start <= target < end]
        return self._windows[window]

    def leads_to(self, start: int) -> frozenset[int]:
        """Return where the function at an address leads by direct jumps alone, also through others: itself, tail calls.

        The conditions of the jumps, and the frames with which they are executed, are not examined.
        """
        if start not in self._leads_to:
            found, waiting = {start}, [start]
            while waiting and len(found) < _MOST_TAILS:
                new = set(self._jumps_out(waiting.pop())) - found
                found |= new
                waiting += new
            self._leads_to[start] = frozenset(found)
        return self._leads_to[start]

    def _jumps_out(self, start: int) -> Iterator[int]:
        """Yield the targets of the direct jumps out of the function at an address."""
        known = self.extents.find(start)
        function = self.before_next(start) if known is None else known.function
        if function.end - function.start > MAX_SIZE or not self.image.is_code(start):
            return
        for pc, instruction in self._interpreter.sweeps.sweep(function).instructions.items():
            for distance in jumps(instruction):
                if not function.start <= pc + distance < function.end:
                    yield pc + distance

    def followed_to(self, address: int) -> CodeRange | None:
        """Return the function with an address to which calls lead from the entry point, or from functions of tables.

        ``None``: none is found, or following them takes too long.
        """
        if not self.image.is_code(address):
            return None
        known = next((one for one in self._followed if one.start <= address < one.end), None)
        if known is not None:
            return known
        if self._finder is None:
            self._finder = self._new_finder()
        while self._finder.followed < _MOST_FOLLOWED:
            found = self._finder.follow_next()
            if found is not None:
                self._followed.append(CodeRange(*found))
                if found[0] <= address < found[1]:
                    return self._followed[-1]
            elif self._unfollowed:
                self._finder.follow(self._unfollowed.pop())
            else:
                break
        return None

    def _new_finder(self) -> Finder:
        # Other pointers in data are not followed: in a table of labels, they lead to the middle of a function.
        finder = Finder(self.image, self._machine, self._lifter, self._known(), self.before_next)
        self._unfollowed = [*self._known()][::-1]
        entry = self.image.entry_point
        if entry is not None:
            finder.add(entry)
            first = self.extents.find(entry)
            self._unfollowed += [first.function] if first is not None else []
        for start in self._in_global_offset_table():
            finder.add(start)
        return finder

    def _in_global_offset_table(self) -> Iterator[int]:
        """Yield the addresses of functions that code loads from the global offset table, as AArch64's that of main."""
        section = self._binary.named(".got")
        if section is not None:
            slots = range(section.address, section.end - WORD_SIZE + 1, WORD_SIZE)
            values = (self.image.read(slot, WORD_SIZE) for slot in slots)
            yield from (value for value in values if value is not None and self.image.is_code(value))
