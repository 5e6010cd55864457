"""Recognises the findings of ``verify`` in a baseline."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sframe_unwind.baseline import Key
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.verify.verdict import Disagreement, Function, Outcome, Verdict

if TYPE_CHECKING:  # it brings the interpreter of machine code along
    from sframe_unwind.verify.code_report import CodeFinding
    from sframe_unwind.verify.orc_report import OrcDisagreement

_WRONG = (Outcome.IN_PART, Outcome.NOT_COMPARED)


def keys(verdict: Verdict) -> frozenset[Key]:
    """Return the keys of the findings in a file."""
    file = verdict.file
    found = {_of_disagreement(file, one) for one in verdict.disagreements}
    found |= {_of_function(file, one) for one in verdict.functions if one.outcome in _WRONG}
    found |= {_of_problem(file, text) for text in verdict.problems}
    found |= {_of_loading(file, text) for text in verdict.loading}
    if verdict.orc is not None:
        found |= {_of_orc(file, one) for one in verdict.orc.disagreements}
    if verdict.code is not None:
        found |= {_of_code(file, one) for one in verdict.code.findings}
    return frozenset(found)


def without(verdict: Verdict, known: Collection[Key]) -> Verdict:
    """Return a verdict without the findings of a baseline; it has their number."""
    file = verdict.file
    disagreements = tuple(one for one in verdict.disagreements if _of_disagreement(file, one) not in known)
    functions = tuple(
        one for one in verdict.functions if one.outcome not in _WRONG or _of_function(file, one) not in known
    )
    problems = tuple(text for text in verdict.problems if _of_problem(file, text) not in known)
    loading = tuple(text for text in verdict.loading if _of_loading(file, text) not in known)
    left_out = len(verdict.disagreements) - len(disagreements) + len(verdict.loading) - len(loading)
    left_out += len(verdict.functions) - len(functions) + len(verdict.problems) - len(problems)
    orc = verdict.orc
    if orc is not None:
        differing = tuple(one for one in orc.disagreements if _of_orc(file, one) not in known)
        left_out += len(orc.disagreements) - len(differing)
        orc = orc._replace(disagreements=differing)
    code = verdict.code
    if code is not None:
        findings = tuple(one for one in code.findings if _of_code(file, one) not in known)
        left_out += len(code.findings) - len(findings)
        code = code._replace(findings=findings)
    return verdict._replace(
        functions=functions,
        disagreements=disagreements,
        problems=problems,
        orc=orc,
        code=code,
        loading=loading,
        known=left_out,
    )


def _where(spot: FileAddress, name: str) -> str:
    return name.partition("+")[0] or str(spot)


def _of_disagreement(file: str, one: Disagreement) -> Key:
    return Key(file, f"disagreement: {one.what}", _where(one.spot, one.function))


def _of_function(file: str, one: Function) -> Key:
    return Key(file, one.outcome.value, _where(one.spot, one.name))


def _of_problem(file: str, text: str) -> Key:
    return Key(file, "CFI that cannot be read", text)


def _of_loading(file: str, text: str) -> Key:
    return Key(file, "cannot be loaded", text)


def _of_orc(file: str, one: OrcDisagreement) -> Key:
    return Key(file, f"ORC: {one.what}", _where(one.spot, one.function))


def _of_code(file: str, one: CodeFinding) -> Key:
    return Key(file, f"code: {one.what} of {one.table}", _where(one.spot, one.function))
