"""Formats the SFrame data of a process as text, one line per module, for ``sframe status``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sframe_unwind.address import merged
from sframe_unwind.errors import SFrameError, counted
from sframe_unwind.report.columns import aligned
from sframe_unwind.report.notation import describe_rule
from sframe_unwind.sframe.constants import Flag
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.passed_over import passed_over
from sframe_unwind.unwind.precedence import Precedence, Reason
from sframe_unwind.unwind.stub_rows import wrong_rows

_TITLES = ("module", "section at", "version", "ABI", "functions", "flags", "of the code")

_TOO_LARGE = ">100%"
_WHY_CFI = {
    Reason.OUTERMOST: "the CFI marks the outermost frame",
    Reason.SIGNAL: "the CFI differs in whether a signal interrupted the caller",
    Reason.COMPUTED: "the CFI computes the frame by an expression",
    Reason.DIFFER: "the CFI gives another caller, and is used unless the code proves the row",
    Reason.CODE: "the code refutes them, and proves the CFI",
}
"""Why CFI is used in place of rows; :attr:`Reason.REWRITTEN` names what rewrote the file."""


def to_text(modules: Modules, mode: str, about: Iterable[str], precedence: Precedence | None = None) -> list[str]:
    """Return the lines of ``sframe status``.

    :param modules: the modules of the process; sections of another architecture are listed as not used.
    :param mode: the mode of the plugin.
    :param about: lines about the debugger, which come first.
    :param precedence: decides between SFrame and CFI in the mode; ``None``: the mode does not compare them.
    """
    arch = modules.arch
    rows: list[tuple[str, ...]] = [_TITLES]
    problems: list[str] = []
    without: list[str] = []
    for module in modules.modules:
        section = module.section
        if module.error:
            problems.append(f"{module.name}: not used: {module.error}")
        elif section is None:
            without.append(Path(module.name).name)
        elif section.arch not in (None, arch):
            problems.append(f"{module.name}: not used: SFrame for {section.arch and section.arch.name}")
        else:
            try:
                rows.append(_row(module, section))
                if rows[-1][-1] == _TOO_LARGE:
                    problems.append(f"{module.name}: the functions are larger than the code: try sframe-unwind lint")
                problems += _wrong_rows(module, section, modules)
                if precedence is not None:
                    problems += _passed_over(module, modules, precedence)
            except SFrameError as error:
                problems.append(f"{module.name}: {error}")
            if section.rest:
                problems.append(f"{module.name}: {section.rest}")
    lines = [*about, f"mode {mode}", ""]
    if len(rows) > 1:
        lines += aligned(rows)
    else:
        lines.append("no module has usable SFrame data")
    lines += problems
    if without:
        lines.append(f"without SFrame: {', '.join(without)}")
    return lines


def _wrong_rows(module: Module, section: Section, modules: Modules) -> list[str]:
    """Return the line about rows of PLT stubs that the code refutes; empty: there are none."""
    wrong = [] if modules.read is None else wrong_rows(section, modules.arch, modules.read)
    if not wrong:
        return []
    first = wrong[0]
    row, code = (describe_rule(rule, modules.arch)[0] for rule in (first.row, first.code))
    what = counted(len(wrong), "row of a PLT stub", "rows of PLT stubs")
    at = f"at {first.address:#x}, {code} and not {row.removeprefix('CFA = ')}"
    return [f"{module.name}: {what} cannot be true, the code is used instead: {at}"]


def _passed_over(module: Module, modules: Modules, precedence: Precedence) -> list[str]:
    """Return the lines about rows that are not used, because CFI gives another caller."""
    return [
        f"{module.name}: {counted(one.rows, 'row is', 'rows are')} not used, the first at {one.first:#x}:"
        f" {_WHY_CFI.get(one.reason) or f'the file was {module.rewritten}'}"
        for one in passed_over(module, modules, precedence)
    ]


def _row(module: Module, section: Section) -> tuple[str, ...]:
    headers = [table.header for table in section.tables]
    versions = "+".join(str(version) for version in sorted({header.version for header in headers}))
    flags = sorted({flag.name or "" for header in headers for flag in Flag if flag in header.flags})
    return (
        Path(module.name).name,
        "generated" if module.is_generated else f"{section.address:#x}",
        versions + (f" ({len(headers)} tables)" if len(headers) > 1 else ""),
        section.arch.name if section.arch else "-",
        str(sum(len(table) for table in section.tables)),
        " ".join(flags) or "-",
        # Of a module of the kernel, not the code that the kernel has freed when the module was ready.
        _share(section.covered(merged(module.ranges)), module.code_size),
    )


def _share(covered: int, code_size: int) -> str:
    """Return the share of the code that SFrame describes.  A damaged section may claim more than 100%."""
    if not code_size:
        return "-"
    share = round(100 * covered / code_size)
    return f"{share}%" if share <= 100 else _TOO_LARGE
