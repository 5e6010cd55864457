"""Evaluates the expressions that users give to commands, without running code of the process."""

from __future__ import annotations

import re

import lldb

from lldb_plugin.version import REMOVES_SIGNATURES
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.errors import SFrameError

_SUM = re.compile(r"(.*\S)\s*([-+])\s*(0[xX][0-9a-fA-F]+|[1-9][0-9]{0,18}|0)", re.DOTALL)
"""An address plus or minus a number of bytes.  GDB accepts a function as the address; an expression of C++ does not."""


def address_of(context: lldb.SBExecutionContext, text: str) -> int:
    """Return an address: the value of an expression, or the address of the structure or array that it denotes.

    :raises SFrameError: LLDB cannot evaluate it, or not without running code.
    """
    try:
        return int(text, 0) & ADDRESS_MASK
    except ValueError:
        pass
    value, complaint = _evaluate(context, f"(unsigned long)({text})")
    if complaint:  # the value may be a structure, which has an address but is no number
        value, no_structure = _evaluate(context, f"(unsigned long)&({text})")
        if no_structure:
            function = _function_named(context.GetTarget(), text)
            if function is not None:
                return function
            sum_of = _SUM.fullmatch(text)
            if sum_of is None:
                raise SFrameError(f"{text!r} is not an address: {complaint}")
            return address_of(context, sum_of[1]) + int(sum_of[2] + sum_of[3], 0) & ADDRESS_MASK
    address = value.GetValueAsAddress() if REMOVES_SIGNATURES else value.GetValueAsUnsigned()
    return int(address) & ADDRESS_MASK


def _function_named(target: lldb.SBTarget, name: str) -> int | None:
    """Return the address of the only function with a name as LLDB shows it; ``None``: none or several have it.

    Without debug information, expressions cannot contain the names of functions of C++ and Rust.  Without a process,
    the address is the one in the file.
    """
    addresses = set()
    for found in target.FindFunctions(name, lldb.eFunctionNameTypeAuto):
        function = found.GetFunction()
        start = (function if function.IsValid() else found.GetSymbol()).GetStartAddress()
        loaded = start.GetLoadAddress(target)
        addresses.add(int(start.GetFileAddress() if loaded == lldb.LLDB_INVALID_ADDRESS else loaded))
    return addresses.pop() if len(addresses) == 1 else None


def _evaluate(context: lldb.SBExecutionContext, text: str) -> tuple[lldb.SBValue, str]:
    """Return the value of an expression, and LLDB's error message; empty: there is a value."""
    options = lldb.SBExpressionOptions()
    options.SetAllowJIT(False)  # LLDB then interprets the expression, or fails
    options.SetSuppressPersistentResult(True)
    frame = context.GetFrame()
    value = (frame if frame.IsValid() else context.GetTarget()).EvaluateExpression(text, options)
    if value.IsValid() and value.GetError().Success():
        return value, ""
    return value, _reason(value.GetError().GetCString() or "") or "LLDB cannot evaluate it"


def _reason(complaint: str) -> str:
    """Return the line of the compiler's message that has the reason."""
    found = re.search(r"error: (?:<.*?>(?::\d+)*: )?(?!.*error: )(.*)", complaint)
    return found[1] if found else " ".join(complaint.split())
