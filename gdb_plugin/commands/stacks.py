"""GDB's frames as the core's stacks, by SFrame and by GDB's own unwinder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gdb

from gdb_plugin.commands.contexts import debugger
from gdb_plugin.commands.contexts import name_of as name_of_code
from gdb_plugin.frames.unwinder import Recorder, SFrameUnwinder
from gdb_plugin.interface.selection import chain, selection_kept
from gdb_plugin.interface.texts import path_of, text
from gdb_plugin.lifecycle.session import Session
from gdb_plugin.process.functions import name_of
from gdb_plugin.process.memory import read
from gdb_plugin.process.modules import list_modules
from gdb_plugin.process.process import Process
from gdb_plugin.process.registers import arch_of
from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.debugger import contexts, tasks
from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.debugger.commands import ContextArgument
from sframe_unwind.debugger.settings import ALWAYS, OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.kernel.entry_code import shown_name
from sframe_unwind.kernel.linux import EXCEPTION
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.kernel.unwinder import NAME as KERNEL
from sframe_unwind.report.compare import Comparison, compare
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import ShownFrame, Stack, by_sframe
from sframe_unwind.unwind.modules import Found, Modules, NoData
from sframe_unwind.unwind.saved_context import SavedContext, from_registers
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import UnwindRule

NATIVE = "gdb"
_BEYOND = 100
"""Number of GDB's own frames to show beyond the number of SFrame's frames."""
_SHARED = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
"""Frames that GDB derives from debug information, without unwinding."""
_NAMES = {gdb.DUMMY_FRAME: "<function called from gdb>", gdb.SIGTRAMP_FRAME: "<signal handler called>"}
"""GDB's names of frames that belong to no function."""


class Stacks:
    """Reads the selected thread's stack, by SFrame or by GDB's own unwinder."""

    def __init__(self, unwinder: SFrameUnwinder, session: Session) -> None:
        self._unwinder = unwinder
        self._session = session

    def by_sframe(self, limit: int | None = None) -> Stack:
        """Return the stack by SFrame; frames without SFrame data are GDB's.

        :param limit: maximum number of frames.
        :raises gdb.error: there is no stack.
        """
        return self._stack(Settings(ALWAYS, strict=True), limit)

    def comparison(self, limit: int | None = None) -> Comparison:
        """Compare the stack by SFrame with the stack by GDB's own unwinders; see :meth:`by_sframe`."""
        sframe = self.by_sframe(limit)
        # Without unwind data, GDB's own unwinder can guess endlessly.
        return compare(self._stack(Settings(OFF), limit or len(sframe.frames) + _BEYOND), sframe)

    def process(self) -> Process:
        """Return the current process.

        :raises gdb.error: there is no stack, or SFrame has no ABI for it.
        """
        try:
            frame = gdb.newest_frame()
        except gdb.error as error:
            raise gdb.error("no process" if str(error) == "No registers." else str(error)) from error
        process = self._session.current(frame, in_command=True)
        if process is None:
            raise gdb.error(f"SFrame has no ABI for architecture {frame.architecture().name()}")
        return process

    def context(self, argument: ContextArgument) -> SavedContext:
        """Return the context that an option of a command names; see :func:`saved_context`."""
        process = self.process()
        return contexts.saved_context(argument, process.modules, read, debugger(process))

    def of_context(self, argument: ContextArgument, limit: int | None) -> Stack:
        """Return the stack of a context that does not run, by the core alone: GDB unwinds threads.

        :param limit: maximum number of frames.
        """
        return self._of_saved(self.process(), self.context(argument), limit)

    def of_tasks(self, pattern: str, state: str) -> list[str]:
        """Return the lines that show the tasks of the kernel with their stacks.

        :param pattern: see :func:`sframe_unwind.debugger.tasks.chosen`; ``state`` likewise.
        """
        process = self.process()
        kernel = process.known_kernel()
        wanted = tasks.chosen(TaskList(kernel), pattern, state)
        return list(
            tasks.grouped_lines(wanted, lambda task: self._of_saved(process, tasks.context_of(kernel, task), None))
        )

    def _beyond(self, process: Process, frame: gdb.Frame, limit: int | None) -> Stack | None:
        """Return the rest of a stack from a frame on, if the kernel came there from a stack at lower addresses.

        Only the core unwinds it: GDB takes it for corrupt.  ``None``: the stack ends for another reason.
        """
        place = process.entry_places.get(frame.pc() - 1)
        is_left = place is not None and place.kind is PlaceKind.STACK_SWITCH
        registers = process.registers(frame)
        sp, fp = (_register(frame, register) for register in (registers.sp, registers.fp))
        if not is_left or frame.unwind_stop_reason() != gdb.FRAME_UNWIND_INNER_ID or sp is None or fp is None:
            return None
        arch = process.arch
        context = from_registers(arch, {arch.pc: frame.pc(), arch.sp: sp, arch.fp: fp}, read)
        found = self._of_saved(process, context, limit)
        return found._replace(frames=found.frames[1:])

    def _of_saved(self, process: Process, context: SavedContext, limit: int | None) -> Stack:
        steps = contexts.walk(context, process.modules, read, self._pac_mask(process), process.kernel)
        return contexts.stack(steps, process.modules, partial(name_of_code, process), limit)

    def explained(self, argument: ContextArgument) -> tuple[int, FrameContext]:
        """Return the lookup address of a context's innermost frame, and the registers and memory to explain its row."""
        return contexts.explained(self.context(argument), read, self._pac_mask(self.process()))

    def _pac_mask(self, process: Process) -> int | None:
        frame = gdb.newest_frame()
        return process.registers(frame).pac_mask(frame)

    def code(self) -> ProcessCode:
        """Return the code of the current process, or of the program's files if there is no process.

        :raises gdb.error: there is neither, or SFrame has no ABI for it.
        """
        if gdb.selected_thread() is None:
            return ProcessCode(_modules_of_files(), read, name_of)
        return ProcessCode(self.process().modules, read, name_of)

    def selected(self) -> tuple[int, FrameContext]:
        """Return the selected frame's lookup address, and the registers and memory to explain its row.

        :raises gdb.error: there is no stack.
        """
        process = self.process()
        frame = gdb.selected_frame()
        while frame.type() in _SHARED and frame.older() is not None:
            frame = frame.older()
        interrupted = _is_interrupted(process, frame)
        registers = process.registers(frame)
        process.read_word.forget()
        here = FrameContext(
            _register(frame, registers.sp) or 0,
            _register(frame, registers.fp) or 0,
            process.read_word,
            registers.reader(frame) if interrupted else None,
            registers.pac_mask(frame),
        )
        return lookup_address(frame.pc(), interrupted), here

    @contextmanager
    def _unwound(self, settings: Settings, recorder: Recorder) -> Iterator[None]:
        """Unwind with other settings inside the block; the selected frame stays selected."""
        unwinder = self._unwinder
        before, enabled = unwinder.settings, unwinder.enabled
        sleeps = unwinder not in gdb.frame_unwinders
        unwinder.enabled = True
        with selection_kept():
            if sleeps:
                gdb.frame_unwinders.insert(0, unwinder)
            unwinder.set(settings, recorder)
            try:
                yield
            finally:
                unwinder.enabled = enabled
                if sleeps:
                    gdb.frame_unwinders.remove(unwinder)
                unwinder.set(before)

    def _stack(self, settings: Settings, limit: int | None) -> Stack:
        process = self.process()
        recorder = Recorder()
        frames: list[ShownFrame] = []
        with self._unwound(settings, recorder):
            try:
                for walked in _walk(process, recorder):
                    if len(frames) == limit:
                        return _titled(frames, contexts.only(len(frames)))
                    frames.append(_shown(process, walked, len(frames)))
                end = _end(process, recorder, walked.frame, settings.mode)
                beyond = self._beyond(process, walked.frame, limit) if settings.mode == ALWAYS else None
                if beyond is not None:
                    levels = range(len(frames), limit or len(frames) + len(beyond.frames))
                    frames += [frame._replace(level=level) for level, frame in zip(levels, beyond.frames)]
                    end = beyond.end
            except gdb.error as error:
                end = str(error)
        return _titled(frames, end)


def _modules_of_files() -> Modules:
    """Return the modules of the program's files, at the addresses that the files have.

    :raises gdb.error: there is no file, or SFrame has no ABI for it.
    """
    if not path_of(gdb.current_progspace()):
        raise gdb.error("no process, and no program file")
    architecture = gdb.selected_inferior().architecture()
    arch = arch_of(architecture)
    if arch is None:
        raise gdb.error(f"SFrame has no ABI for architecture {architecture.name()}")
    return Modules(arch, list_modules(arch, may_execute=True), read=read)


class _Walked(NamedTuple):
    """A frame that has registers."""

    frame: gdb.Frame
    fp: int | None
    claimed: bool
    """SFrame unwound it."""
    interrupted: bool
    cfa: int | None
    has_caller: bool
    """It has a caller, whether or not the user's settings let GDB show it."""


def _walk(process: Process, recorder: Recorder) -> Iterator[_Walked]:
    """Yield the physical frames of the selected thread.

    :raises gdb.error: GDB cannot continue; the frames up to there have been yielded.
    """
    frame = _physical(gdb.newest_frame())
    interrupted, fp = True, None
    if frame is not None:
        fp = _register(frame, process.registers(frame).fp)
    while frame is not None:
        registers = process.registers(frame)
        pc, sp = frame.pc(), _register(frame, registers.sp)
        claimed = (pc, sp) in recorder.claimed
        rule = _rule(process, lookup_address(pc, interrupted), claimed)
        error, outer = None, None
        try:
            outer = _physical(frame.older())
        except gdb.error as problem:
            error = problem
        if outer is not None and _is_user_space(process, outer):
            outer = None
        if outer is not None:
            outer_sp = _register(outer, process.registers(outer).sp)
            cfa = None if outer_sp is None else outer_sp - process.arch.sp_from_cfa
            yield _Walked(frame=frame, fp=fp, claimed=claimed, interrupted=interrupted, cfa=cfa, has_caller=True)
        else:
            limited = error is None and frame.unwind_stop_reason() == gdb.FRAME_UNWIND_NO_REASON
            cfa = _cfa(process, frame, rule, sp, fp) if limited else None
            yield _Walked(
                frame=frame, fp=fp, claimed=claimed, interrupted=interrupted, cfa=cfa, has_caller=cfa is not None
            )
        if error is not None:
            raise error
        interrupted = _has_interrupted_caller(process, frame)
        # If a register is saved in a frame far inside, GDB needs long to find it, for each frame.
        unchanged = not (claimed or interrupted) and rule is not None and rule.cfa is not None and rule.fp is None
        if outer is not None and not unchanged:
            fp = _register(outer, process.registers(outer).fp)
        frame = outer


def _is_user_space(process: Process, frame: gdb.Frame) -> bool:
    """Return whether a frame belongs to the program that entered the kernel.  GDB 13 continues there with guesses."""
    return process.kernel is not None and not process.arch.may_be_kernel(frame.pc())


def _rule(process: Process, address: int, claimed: bool) -> UnwindRule | None:
    """Return the rule by which a frame was unwound, as far as it is known."""
    if not claimed:
        return process.modules.cfi_rule(address)
    found = process.modules.results[address]
    return found.rule if isinstance(found, Found) else None


def _cfa(process: Process, frame: gdb.Frame, rule: UnwindRule | None, sp: int | None, fp: int | None) -> int | None:
    """Return the CFA of a frame whose caller GDB does not show."""
    if rule is None or sp is None or fp is None:
        return None
    registers = process.registers(frame)
    process.read_word.forget()
    try:
        return step(
            rule=rule,
            arch=process.arch,
            sp=sp,
            fp=fp,
            read_word=process.read_word,
            read_register=registers.reader(frame),
        ).cfa
    except (SFrameError, gdb.error):
        return None


def _shown(process: Process, walked: _Walked, level: int) -> ShownFrame:
    frame = walked.frame
    pc = frame.pc()
    module = process.modules.find(pc)
    module_name = module.name if module else ""
    address = lookup_address(pc, walked.interrupted)
    place = process.entry_places.get(address)
    if place is not None and place.kind is PlaceKind.EXCEPTION and not walked.has_caller:  # of user space
        name, unwinder = text(frame.name) or place.function, KERNEL
    elif place is not None:
        name, unwinder = shown_name(place, text(frame.name)), EXCEPTION if place.kind is PlaceKind.EXCEPTION else KERNEL
    else:
        name = (
            _NAMES.get(frame.type()) or text(frame.name) or process.run_time_name(pc) or process.run_time_name(pc - 1)
        )
        unwinder = by_sframe(address, process.modules) if walked.claimed else NATIVE if walked.has_caller else ""
    source = _place(frame, module_name)
    return ShownFrame(
        level=level,
        pc=pc,
        cfa=walked.cfa,
        fp=walked.fp,
        function=name,
        place=source,
        module=module_name,
        unwinder=unwinder,
        lookup=address,
    )


def _end(process: Process, recorder: Recorder, frame: gdb.Frame, mode: str) -> str:
    """Return why GDB shows no frame beyond a frame."""
    place = process.entry_places.get(lookup_address(frame.pc(), _is_interrupted(process, frame)))
    if place is not None and place.is_outermost:
        return place.kind.value
    if place is not None and place.kind is PlaceKind.EXCEPTION:
        outer = _physical(frame.older())
        # A frame that was claimed as the outermost one is not a signal frame.
        if frame.type() == gdb.NORMAL_FRAME or (outer is not None and _is_user_space(process, outer)):
            return PlaceKind.USER_ENTRY.value
    by_sframe = _by_sframe(process, recorder, frame) if mode == ALWAYS else ""
    reason = frame.unwind_stop_reason()
    if reason != gdb.FRAME_UNWIND_NO_REASON:
        why = str(gdb.frame_stop_reason_string(reason))
        return f"{why}; SFrame: {by_sframe}" if by_sframe else why
    if text(frame.name) == "main" and not gdb.parameter("backtrace past-main"):
        return "main; GDB goes on with 'set backtrace past-main on'"
    return by_sframe or "the outermost frame for GDB; 'show backtrace' lists its limits"


def _by_sframe(process: Process, recorder: Recorder, frame: gdb.Frame) -> str:
    """Return why a frame has no caller according to SFrame."""
    pc = frame.pc()
    refused = recorder.refused.get((pc, _register(frame, process.registers(frame).sp) or 0))
    if refused is not None:
        return refused
    answer = process.modules.results[lookup_address(pc, _is_interrupted(process, frame))]
    if isinstance(answer, NoData):
        return answer.reason
    if isinstance(answer, Found) and answer.rule.ra_undefined:
        return "the return address is undefined, this is the outermost frame"
    return ""


def _is_interrupted(process: Process, frame: gdb.Frame) -> bool:
    """Return whether the pc of a frame is the next instruction, not a return address."""
    inner = frame.newer()
    while inner is not None and inner.type() in _SHARED:
        inner = inner.newer()
    return inner is None or _has_interrupted_caller(process, inner)


def _has_interrupted_caller(process: Process, frame: gdb.Frame) -> bool:
    """Return whether the caller of a frame was interrupted."""
    if frame.type() not in _NAMES:
        return False
    # For GDB, a switch of the kernel's stacks is also a signal frame, because the plugin's CFI marks it as one.
    place = process.entry_places.get(frame.pc() - 1)
    return place is None or place.kind is PlaceKind.EXCEPTION


def _titled(frames: list[ShownFrame], end: str) -> Stack:
    thread = gdb.selected_thread()
    if thread is None:
        return Stack("0", "Core without threads", tuple(frames), end)
    number = f"{thread.inferior.num}.{thread.num}" if len(gdb.inferiors()) > 1 else str(thread.num)
    return Stack(number, f'Thread {number} "{text(lambda: thread.name)}"', tuple(frames), end)


def _physical(frame: gdb.Frame | None) -> gdb.Frame | None:
    """Return the first frame that has registers, from a frame outward."""
    return next((frame for frame in chain(frame) if frame.type() not in _SHARED), None)


def _register(frame: gdb.Frame, descriptor: Any) -> int | None:
    try:
        return int(frame.read_register(descriptor)) & ADDRESS_MASK
    except gdb.error:
        return None


def _place(frame: gdb.Frame, module: str) -> str:
    line = frame.find_sal()
    if line.symtab is not None and line.line:
        return f"{_file_name(path_of(line.symtab))}:{line.line}"
    return _file_name(module)


@lru_cache(maxsize=1000)
def _file_name(path: str) -> str:
    """Return the last part of a path; it is cached, because a stack has the same files at each stop."""
    return Path(path).name
