"""Makes CFI from SFrame and gives it to LLDB, whose own unwinder can then unwind functions that only SFrame describes.

LLDB reads this CFI from a symbol file, and a module has only one symbol file.  So only modules without debug
information get CFI: when the symbol file is replaced, LLDB 23.1 loses the members of types that it had read before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import lldb

from lldb_plugin.interface.interpreter import run
from lldb_plugin.interface.telling import Report
from sframe_unwind.errors import EncodeError, SFrameError, counted

_SFRAME = ".sframe"
_DEBUG_INFORMATION = (".debug_info", ".debug_frame")


class Conversions:
    """The modules that were given CFI.

    :param report: shows one line to the user.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._made: set[str] = set()
        """Paths of the symbol files that were created."""

    def convert(self, target: lldb.SBTarget, name: str) -> list[str]:
        """Give LLDB CFI for the modules of a target; return the results, mostly one line for each that lacked CFI.

        :param name: name of one module's file, with or without its folder; ``""``: all modules.
        :raises SFrameError: the target has no modules.
        """
        if not target.GetNumModules():
            raise SFrameError("no program: 'target create FILE' opens one")
        modules = [
            (module, path)
            for module, path in ((module, module.GetFileSpec().fullpath or "") for module in target.module_iter())
            if name in ("", path, Path(path).name) and module.FindSection(_SFRAME).IsValid()
        ]
        if not modules:
            return [f"no module{f' {name!r}' if name else ''} has a section {_SFRAME}"]
        lines = []
        for module, path in modules:
            try:
                lines.append(f"{path}: {self._convert(target, module, path)}")
            except EncodeError as error:  # no function lacks CFI
                lines += [str(error)] if name else []
            except SFrameError as error:
                lines.append(f"{path}: {error}")
        return lines or ["no module needs it: there is CFI for each function that SFrame describes"]

    def status_lines(self, target: lldb.SBTarget) -> list[str]:
        """Return the line of ``sframe status`` about a target's modules that were given CFI; none: there are none."""
        names = [module.GetFileSpec().basename for module in target.module_iter() if self._is_converted(module)]
        said = "with CFI made from SFrame, so that 'sframe compare' has nothing else to compare with: "
        return [said + ", ".join(names)] if names else []

    def _is_converted(self, module: lldb.SBModule) -> bool:
        return module.GetSymbolFileSpec().fullpath in self._made

    def _convert(self, target: lldb.SBTarget, module: lldb.SBModule, path: str) -> str:
        """Give LLDB CFI for one module; return the result in words.

        :raises SFrameError: the module has debug information, or LLDB does not accept the file; see also
            :func:`sframe_unwind.convert.to_debug_frame.convert_to_debug_frame`.
        """
        from sframe_unwind.convert.to_debug_frame import convert_to_debug_frame  # few sessions need it

        if self._is_converted(module):
            return "LLDB has CFI made from SFrame"
        if any(module.FindSection(section).IsValid() for section in _DEBUG_INFORMATION):
            raise SFrameError("has debug information, beside which LLDB takes no other file")
        # LLDB maps the file as a whole when it is added.
        with tempfile.TemporaryDirectory(prefix="sframe-unwind-") as folder:
            made = Path(folder) / f"{Path(path).name}.debug"
            converted = convert_to_debug_frame(path, made)
            run(target, f"target symbols add -s {_quoted(path)} {_quoted(str(made))}", self._report)
        if module.GetSymbolFileSpec().fullpath != str(made):
            raise SFrameError("LLDB does not take the CFI")
        self._made.add(str(made))
        lost = f", {len(converted.losses)} left out" if converted.losses else ""
        return f"CFI made from SFrame for {counted(converted.functions, 'function')}{lost}"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
