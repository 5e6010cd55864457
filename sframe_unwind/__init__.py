"""Read, write, look up and unwind SFrame data, in pure Python.

SFrame (the ELF section ``.sframe``) tells for the addresses of a program how to find the caller of a frame: the CFA,
the return address and the frame pointer.  The caller of this library provides unwind data, registers and memory; the
library returns rules, frames, and the reason why a stack ends.  It controls no process, so it can unwind stacks of
another machine.  Versions 1, 2 and 3 of the format are supported, for AMD64, AArch64 in both byte orders, and s390x.

Write a section with one function, look an address up in it, and unwind one frame:

>>> import sframe_unwind as sf
>>> entry = sf.UnwindRule(sf.RegisterRule(7, 8, False), sf.saved_at_cfa(-8), None)     # CFA = rsp + 8
>>> pushed = sf.UnwindRule(sf.RegisterRule(7, 16, False), sf.saved_at_cfa(-8), sf.saved_at_cfa(-16))
>>> table = sf.usual_table(3, sf.AbiNumber.AMD64_ENDIAN_LITTLE)
>>> function = sf.function_from_rules(table, 0x1000, 0x20, [(0, entry), (1, pushed)])
>>> data = sf.encode(sf.SectionSpec(0x2000, (table._replace(functions=(function,)),)))

>>> section = sf.Section(data, 0x2000)
>>> match = section.lookup(0x1008)
>>> assert isinstance(match, sf.Match)              # a Miss has the reason
>>> sf.describe_rule(match.rule, match.arch)
['CFA = rsp + 16', 'return address in memory at CFA - 8', 'rbp in memory at CFA - 16']

>>> stack = {0x7ff0: 0xbeef, 0x7ff8: 0x4005}        # address to word: the saved rbp, the return address
>>> caller = sf.step(match.rule, match.arch, sp=0x7ff0, fp=0, read_word=stack.__getitem__)
>>> print(f"CFA {caller.cfa:#x}, pc {caller.pc:#x}, sp {caller.sp:#x}, fp {caller.fp:#x}")
CFA 0x8000, pc 0x4005, sp 0x8000, fp 0xbeef

====================  ==============================================================================================
file                  :func:`load` opens the sections of an ELF file, :class:`Section` the bytes of one section
functions and rows    :meth:`Section.functions`, :meth:`Function.rows`, :class:`UnwindRule`, :class:`RegisterRule`
address               :meth:`Section.lookup` returns a :class:`Match` or a :class:`Miss`; :func:`lookup_address` returns
                      the address to look up, :func:`describe_rule` a rule in words
one frame             :func:`step`
stack                 :class:`Walk` over :class:`Modules` yields frames; :class:`End` is the reason why it ended
writing               :func:`encode` a :class:`SectionSpec`; :func:`function_from_rules`, :func:`describe`
checking              :func:`verify_file` compares the SFrame of a file with its DWARF CFI
errors                :class:`SFrameError` is the base of all; a :class:`FormatError` has the section and the offset
====================  ==============================================================================================

Addresses are integers of 64 bits, sizes are in bytes, registers are DWARF register numbers.  For any input, each error
is an :class:`SFrameError`.  An address without SFrame is not an error.

No package is needed.  Names outside ``__all__`` are private and change without notice.  ``docs/api.md`` has longer
programs.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As in :mod:`typing`, which takes longer to import than all that ``--version`` needs; type checkers know the name."""

if TYPE_CHECKING:
    from sframe_unwind.address import lookup_address
    from sframe_unwind.arch import ARCHES, Arch
    from sframe_unwind.elf import load
    from sframe_unwind.errors import (
        EncodeError,
        FileError,
        FormatError,
        MemoryReadError,
        NoSFrameError,
        ProcessError,
        SFrameError,
        StepError,
        UnsupportedError,
        UnsupportedExpressionError,
    )
    from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord, WordReader
    from sframe_unwind.report.notation import describe_rule
    from sframe_unwind.sframe.constants import AbiNumber, FdeType, Flag, PauthKey, PcType
    from sframe_unwind.sframe.encode import (
        FunctionSpec,
        RowSpec,
        SectionSpec,
        TableSpec,
        describe,
        encode,
        usual_table,
    )
    from sframe_unwind.sframe.encode_rule import function as function_from_rules
    from sframe_unwind.sframe.fde import Fde
    from sframe_unwind.sframe.header import Header
    from sframe_unwind.sframe.section import Section
    from sframe_unwind.sframe.table import Function, Match, Miss, Table
    from sframe_unwind.unwind.modules import Found, Module, Modules, NoData, Unusable
    from sframe_unwind.unwind.step import Caller, step
    from sframe_unwind.unwind.walk import End, FallbackUnwinder, Frame, Registers, UnwindResult, Walk
    from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
    from sframe_unwind.verify import verify as verify_file
    from sframe_unwind.verify.verdict import Disagreement, Verdict

__version__ = "0.2.0"

__all__ = [
    "ARCHES",
    "CFA",
    "OUTERMOST",
    "AbiNumber",
    "Arch",
    "Caller",
    "Disagreement",
    "EncodeError",
    "End",
    "FallbackUnwinder",
    "Fde",
    "FdeType",
    "FileError",
    "Flag",
    "FormatError",
    "Found",
    "Frame",
    "Function",
    "FunctionSpec",
    "Header",
    "Match",
    "MemoryReadError",
    "Miss",
    "Module",
    "Modules",
    "NoData",
    "NoSFrameError",
    "PauthKey",
    "PcType",
    "ProcessError",
    "ReadMemory",
    "ReadRegister",
    "ReadWord",
    "RegisterRule",
    "Registers",
    "RowSpec",
    "SFrameError",
    "Section",
    "SectionSpec",
    "StepError",
    "Table",
    "TableSpec",
    "UnsupportedError",
    "UnsupportedExpressionError",
    "Unusable",
    "UnwindResult",
    "UnwindRule",
    "Verdict",
    "Walk",
    "WordReader",
    "__version__",
    "describe",
    "describe_rule",
    "encode",
    "function_from_rules",
    "load",
    "lookup_address",
    "saved_at_cfa",
    "step",
    "usual_table",
    "verify_file",
]

# The module of each name.  Nothing is imported before it is asked for: a command or a plugin needs few of them.
_NAMES = {
    "errors": (
        "EncodeError FileError FormatError MemoryReadError NoSFrameError ProcessError SFrameError StepError"
        " UnsupportedError UnsupportedExpressionError"
    ),
    "address": "lookup_address",
    "memory": "ReadMemory ReadRegister ReadWord WordReader",
    "unwind_rule": "CFA OUTERMOST RegisterRule UnwindRule saved_at_cfa",
    "arch": "ARCHES Arch",
    "sframe.constants": "AbiNumber FdeType Flag PauthKey PcType",
    "sframe.fde": "Fde",
    "sframe.header": "Header",
    "sframe.table": "Function Match Miss Table",
    "sframe.section": "Section",
    "sframe.encode": "FunctionSpec RowSpec SectionSpec TableSpec describe encode usual_table",
    "sframe.encode_rule": "function_from_rules",
    "unwind.step": "Caller step",
    "unwind.modules": "Found Module Modules NoData Unusable",
    "unwind.walk": "End FallbackUnwinder Frame Registers UnwindResult Walk",
    "elf": "load",
    "report.notation": "describe_rule",
    "verify": "verify_file",
    "verify.verdict": "Disagreement Verdict",
}
_RENAMED = {"function_from_rules": "function", "verify_file": "verify"}
"""Names that are shorter in their modules."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), _RENAMED.get(name, name))
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
