"""Asks LLDB for the data of contexts that do not run (expressions, registers, symbols), and makes their stacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import lldb

from lldb_plugin.commands import stacks
from lldb_plugin.commands.expressions import address_of
from lldb_plugin.commands.stacks import Snapshot
from sframe_unwind.debugger import contexts, tasks
from sframe_unwind.debugger.arguments import ContextArgument
from sframe_unwind.debugger.contexts import Debugger
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import Stack
from sframe_unwind.unwind.saved_context import SavedContext


class Contexts:
    """The contexts in one process.

    :param context: the context in which expressions are evaluated.
    :param snapshot: the selected thread.
    """

    def __init__(self, context: lldb.SBExecutionContext, snapshot: Snapshot) -> None:
        self._context = context
        self._snapshot = snapshot
        self._process = snapshot.process

    def stack(self, argument: ContextArgument, limit: int | None) -> Stack:
        """Return the stack of a context.

        :param limit: maximum number of frames.
        :raises SFrameError: there is no such context.
        """
        return self._of_saved(self._saved(argument), limit)

    def of_tasks(self, pattern: str, state: str) -> list[str]:
        """Return the lines that show the tasks of the kernel with their stacks.

        :param pattern: see :func:`sframe_unwind.debugger.tasks.chosen`; ``state`` likewise.
        """
        kernel = self._process.known_kernel()
        wanted = tasks.chosen(TaskList(kernel), pattern, state)
        return list(tasks.grouped_lines(wanted, lambda task: self._of_saved(tasks.context_of(kernel, task), None)))

    def explained(self, argument: ContextArgument) -> tuple[int, FrameContext]:
        """Return the lookup address of a context's innermost frame, and the context to explain its row; see
        :meth:`stack`."""
        return contexts.explained(self._saved(argument), self._process.read, self._process.pac_mask)

    def _of_saved(self, context: SavedContext, limit: int | None) -> Stack:
        process = self._process
        # Only for a task: the stack of a fiber does not reach the kernel, if there is one.
        kernel = process.kernel_at(context.innermost.pc)
        steps = contexts.walk(context, process.modules, process.read, process.pac_mask, kernel)
        return contexts.stack(steps, process.modules, partial(stacks.name_of, self._snapshot), limit)

    def _saved(self, argument: ContextArgument) -> SavedContext:
        debugger = Debugger(
            partial(address_of, self._context),
            self._register,
            self._symbols,
            lambda: None,  # LLDB does not show the auxiliary vector
            self._process.known_kernel,
        )
        return contexts.saved_context(argument, self._process.modules, self._process.read, debugger)

    def _register(self, name: str) -> int | None:
        value = self._snapshot.thread.GetFrameAtIndex(0).FindRegister(name)
        return int(value.GetValueAsUnsigned()) if value.IsValid() and value.GetError().Success() else None

    def _symbols(self, name: str) -> Iterator[int]:
        target = self._snapshot.thread.GetProcess().GetTarget()
        for found in target.FindSymbols(name):
            address = found.GetSymbol().GetStartAddress().GetLoadAddress(target)
            if address != lldb.LLDB_INVALID_ADDRESS:
                yield int(address)
