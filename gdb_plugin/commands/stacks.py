"""GDB's frames as the core's stacks, by SFrame and by GDB's own unwinder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import gdb

from gdb_plugin.commands.contexts import debugger
from gdb_plugin.commands.contexts import name_of as name_of_code
from gdb_plugin.commands.showing import MAIN, end_of, ends_at, shown_frame, titled
from gdb_plugin.commands.walking import SHARED, Walked, is_interrupted, register_of, walk_frames
from gdb_plugin.frames.unwinder import Recorder, SFrameUnwinder
from gdb_plugin.frames.unwinding import Unwinding
from gdb_plugin.interface.selection import selection_kept
from gdb_plugin.interface.texts import path_of
from gdb_plugin.lifecycle.session import Session
from gdb_plugin.process.functions import name_of
from gdb_plugin.process.memory import read
from gdb_plugin.process.modules import list_modules
from gdb_plugin.process.process import Process
from gdb_plugin.process.registers import arch_of
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.debugger import contexts, tasks
from sframe_unwind.debugger.arguments import ContextArgument
from sframe_unwind.debugger.code_judge import ProcessCode
from sframe_unwind.debugger.settings import OFF, SFRAME_ALONE, Settings
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.report.compare import Comparison, compare
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import ShownFrame, Stack
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.saved_context import SavedContext

_BEYOND = 100
"""Number of GDB's own frames to show beyond the number of SFrame's frames."""


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
        return self._stack(SFRAME_ALONE, limit)

    def comparison(self, limit: int | None = None) -> Comparison:
        """Compare the stack by SFrame with the stack by GDB's own unwinders; see :meth:`by_sframe`."""
        sframe = self.by_sframe(limit)
        # Where GDB has no unwind data, its own unwinder guesses callers, which need not come to an end.
        return compare(self._stack(Settings(OFF), limit or len(sframe.frames) + _BEYOND), sframe)

    def process(self) -> Process:
        """Return the current process; see :meth:`unwinding`."""
        return self.unwinding().process

    def unwinding(self) -> Unwinding:
        """Return the state of the unwinder for the current process.

        :raises gdb.error: there is no stack, or SFrame has no ABI for it.
        """
        try:
            frame = gdb.newest_frame()
        except gdb.error as error:
            raise gdb.error("no process" if str(error) == "No registers." else str(error)) from error
        unwinding = self._session.current(frame, in_command=True)
        if unwinding is None:
            raise gdb.error(f"SFrame has no ABI for architecture {frame.architecture().name()}")
        return unwinding

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

    def _beyond(self, process: Process, walked: Walked, limit: int | None) -> Stack | None:
        """Return the rest of a stack from a frame on, if that frame was called from a stack at lower addresses.

        Only the core unwinds it: GDB takes it for corrupt, except where its own unwinder finds a signal frame, which
        an unwinder in Python cannot make.  ``None``: the stack ends for another reason.
        """
        frame, arch = walked.frame, process.arch
        if frame.unwind_stop_reason() != gdb.FRAME_UNWIND_INNER_ID:
            return None
        place = process.entry_places.get(frame.pc() - 1)
        if process.kernel is not None and (place is None or place.kind is not PlaceKind.STACK_SWITCH):
            return None
        known = process.registers(frame).by_number
        values = {number: register_of(frame, known[number]) for number in (arch.sp, arch.fp, *arch.preserved)}
        registers = {number: value for number, value in values.items() if value is not None}
        if arch.sp not in registers or arch.fp not in registers:
            return None
        context = SavedContext(arch, {**registers, arch.pc: frame.pc()}, walked.interrupted)
        found = _up_to_main(self._of_saved(process, context, limit))
        return found if len(found.frames) > 1 else None

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
        while frame.type() in SHARED and frame.older() is not None:
            frame = frame.older()
        interrupted = is_interrupted(process, frame)
        registers = process.registers(frame)
        process.read_word.forget()
        here = FrameContext(
            register_of(frame, registers.sp) or 0,
            register_of(frame, registers.fp) or 0,
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
                for walked in walk_frames(process, recorder):
                    if len(frames) == limit:
                        return titled(frames, contexts.only(len(frames)))
                    frames.append(shown_frame(process, walked, len(frames)))
                end = end_of(process, recorder, walked.frame, settings.takes_all)
                beyond = self._beyond(process, walked, limit) if settings.takes_all else None
                if beyond is not None:
                    frames, end = _joined(frames, beyond.frames, limit), beyond.end
            except gdb.error as error:
                end = str(error)
        return titled(frames, end)


def _up_to_main(stack: Stack) -> Stack:
    """Return a stack up to ``main`` if the user's settings let GDB end it there."""
    level = next((level for level, frame in enumerate(stack.frames) if ends_at(frame.function)), None)
    return stack if level is None else stack._replace(frames=stack.frames[: level + 1], end=MAIN)


def _joined(inner: Sequence[ShownFrame], rest: Sequence[ShownFrame], limit: int | None) -> list[ShownFrame]:
    """Return the frames of a stack with the rest of it, which begins with the outermost of them.

    :param limit: maximum number of frames.
    """
    last, known = inner[-1], rest[0]
    last = last._replace(cfa=known.cfa, unwinder=last.unwinder or known.unwinder)
    levels = range(len(inner), limit or len(inner) + len(rest))
    return [*inner[:-1], last, *(frame._replace(level=level) for level, frame in zip(levels, rest[1:]))]


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
