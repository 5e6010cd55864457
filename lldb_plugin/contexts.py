"""Contexts that do not run in LLDB's terms, and their stacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import lldb

from lldb_plugin import stacks
from lldb_plugin.expressions import address_of
from lldb_plugin.stacks import Snapshot
from sframe_unwind.debugger import contexts
from sframe_unwind.debugger.commands import ContextArgument
from sframe_unwind.debugger.contexts import Debugger
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import Stack
from sframe_unwind.unwind.saved_context import SavedContext


class Contexts:
    """The contexts in one process.

    :param context: where expressions are evaluated.
    :param snapshot: the selected thread.
    """

    def __init__(self, context: lldb.SBExecutionContext, snapshot: Snapshot) -> None:
        self._context = context
        self._snapshot = snapshot
        self._process = snapshot.process

    def stack(self, argument: ContextArgument, limit: int | None) -> Stack:
        """Return the stack of a context.

        :param limit: how many frames at the most.
        :raises SFrameError: there is no such context.
        """
        process = self._process
        steps = contexts.walk(self._saved(argument), process.modules, process.read, process.pac_mask)
        return contexts.stack(steps, process.modules, partial(stacks.name_of, self._snapshot), limit)

    def explained(self, argument: ContextArgument) -> tuple[int, FrameContext]:
        """Return the lookup address of a context's innermost frame, and what explains it; see :meth:`stack`."""
        return contexts.explained(self._saved(argument), self._process.read, self._process.pac_mask)

    def _saved(self, argument: ContextArgument) -> SavedContext:
        debugger = Debugger(
            partial(address_of, self._context),
            self._register,
            self._symbols,
            lambda: None,  # LLDB does not show the auxiliary vector
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
