"""The lists of docs/architecture.md: which files have to change for each kind of extension.

Each list is compared with the files that know an extension of its kind which is there already: the machine s390x,
version 3, the header's number of FREs, the sizes of FREs and flexible FDEs, glibc, the rule about mask FDEs, the HTML
page of ``verify``, ``doctor``, ``sframe tasks``, the mode ``always``, the setting ``strict``, the extras of the rows of
a listing, the bytes of code in CFI that a survey counts, the return address 0, ``DW_OP_breg0``, the method
``sframe-linux``, the call chains in samples, BOLT, core files, the extra ``cluster``.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind import arch
from sframe_unwind.cli import main, schema
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from tests.hanging import HANG
from tests.samples.build import build

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin")
ARCHITECTURE, VERSION = "Adding an architecture", "Adding a version of the format"
MEMBER = "Adding a member to a JSON output"
WORDS = {
    ARCHITECTURE: re.compile(r"_?s390x|_?S390X_\w+|EM_S390|s390_\w+"),
    "Adding a field of the header": re.compile("num_fres"),
    "Adding a type of FRE or FDE": re.compile("ADDRESS_SIZES|FLEX"),
    "Adding a consumer of SFrame": re.compile("GLIBC|glibc"),
    "Adding a rule of `lint`": re.compile("MASK_FDE"),
    "Adding an output of `verify`": re.compile(r"sframe_unwind\.verify\.page"),
    "Adding a command to the command line": re.compile(r"doctor|sframe_unwind\.cli\.doctor"),
    "Adding a command to both debuggers": re.compile("TASKS"),
    "Adding a part of a listing": re.compile("PLAIN"),
    "Adding a column of `survey`": re.compile(r"(?s:.*\bin_cfi\b.*)"),
    "Adding an end of stacks": re.compile("PC_ZERO"),
    "Adding a mode of the plugins": re.compile(r"ALWAYS|(?s:.*\nalways: .*)"),
    "Adding a setting of the plugins": re.compile("strict"),
    "Adding a version of GDB or LLDB": re.compile("_MAJOR|native_fails"),
    "Adding an operation of DWARF expressions": re.compile(r"_BREG0|DW_OP_breg.*"),
    "Adding a method of `perf`": re.compile(r"by_sframe_of_linux|sframe-linux"),
    "Adding data of a sample": re.compile("user_chain|.*CALLCHAIN.*"),
    "Adding a tool that rewrites files": re.compile("BOLT_NOTE|BOLT_ORIGINAL"),
    "Adding a source of stacks": re.compile(r"CoreTarget"),
    "Adding an extra": re.compile("cluster|distributed"),
}
"""By section of the page: names, modules and texts that occur in no other code than the files of the list."""
HELP = "sframe_unwind/cli/"
"""The docstrings of these modules are the help of the commands, which is text for users like any other."""
OTHER_FORMATS = ("sframe_unwind/cfi", "sframe_unwind/source", "sframe_unwind/code")
"""These have versions of DWARF, or numbers of opcodes."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the path of each file that debuggers or the command line load, and its syntax tree."""
    for package in PACKAGES:
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            yield str(path.relative_to(CHECKOUT)), ast.parse(path.read_text(encoding="utf-8"))


def words(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield the names of a file, those of its keyword arguments, its texts without docstrings, and its modules.

    These are the module that it is, and those that it imports.
    """
    yield path[: -len(".py")].replace("/", ".")
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    if path.startswith(HELP):
        yield from (ast.get_docstring(tree) or "").split()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.keyword):
            yield str(node.arg)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, (ast.alias, ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@cache
def words_by_file() -> dict[str, frozenset[str]]:
    """Return the words of each file; they are computed once, as reading the files takes most of the time."""
    return {path: frozenset(words(path, tree)) for path, tree in trees()}


def knows_versions(tree: ast.Module) -> bool:
    """Return whether a file has a table or a list of versions, or compares one with a number."""
    for node in ast.walk(tree):
        values: list[object] = []
        if isinstance(node, (ast.Dict, ast.Tuple)):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            values = [getattr(part, "value", None) for part in parts]
        if values in ([1, 2, 3], [2, 3], [3]):
            return True
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = {getattr(side, "attr", getattr(side, "id", "")) for side in sides}
            if "version" in names and any(isinstance(getattr(side, "value", None), int) for side in sides):
                return True
    return False


def text_of(section: str) -> str:
    """Return the text of a section of the page."""
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]


def listed(section: str) -> set[str]:
    """Return the files of the packages in the numbered list of a section of the page."""
    items = "\n".join(re.findall(r"^\d+\. (?:.*\n)(?:   .*\n)*", text_of(section), re.MULTILINE))
    found = set(re.findall(rf"`((?:{'|'.join(PACKAGES)})/[\w/]+\.py)`", items))
    return {path.replace("NAME", "s390x") for path in found}


@pytest.mark.parametrize("section", WORDS)
def test_list_has_the_files_that_know_one(section: str) -> None:
    found = {path for path, known in words_by_file().items() if any(map(WORDS[section].fullmatch, known))}
    assert len(found) > 1
    assert listed(section) == found


def test_every_list_is_compared_and_in_the_table() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (Adding .*)$", page, re.MULTILINE)
    assert {*sections} == {*WORDS, VERSION, MEMBER}
    table = page.partition("## Changes and their files")[2].partition("\n## ")[0]
    linked = re.findall(r"\]\(#([\w-]+)\)", table)
    assert sorted(linked) == sorted(re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in sections)


def test_only_modules_of_facts_ask_what_a_debugger_has() -> None:
    """The rest of a plugin asks for a fact by its name in ``version.py``."""
    asking = {
        path
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
        if {"gdb", "lldb"} & {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
    }
    assert asking == listed("Adding a version of GDB or LLDB")


def test_section_has_the_modules_that_implement_classes_of_lldb() -> None:
    """LLDB's providers and frames are classes of its package ``lldb.plugins``, whose methods can be renamed."""
    found = {path for path, known in words_by_file().items() if any(one.startswith("lldb.plugins.") for one in known)}
    assert len(found) > 2
    assert found <= set(re.findall(r"`(lldb_plugin/[\w/]+\.py)`", text_of("Adding a version of GDB or LLDB")))


def test_section_has_the_modules_that_gdb_calls() -> None:
    """GDB calls classes that are derived from its own, and handlers of its events."""
    found = {path for path, tree in trees() if path.startswith("gdb_plugin/") and any(map(is_called, ast.walk(tree)))}
    assert len(found) > 5
    assert found <= set(re.findall(r"`(gdb_plugin/[\w/]+\.py)`", text_of("Adding a version of GDB or LLDB")))


def is_called(node: ast.AST) -> bool:
    """Return whether a part of a module imports classes of GDB's, derives one from them, or uses its events."""
    if isinstance(node, ast.ImportFrom):
        return str(node.module).startswith("gdb.")
    parts = node.bases if isinstance(node, ast.ClassDef) else [node]
    names = [part for part in parts if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)]
    return any(ast.unparse(name.value) == "gdb" for name in names if parts != [node] or name.attr == "events")


def test_table_has_each_output_and_the_modules_that_make_it() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`.* \| (`.*) \|$", text_of(MEMBER), re.MULTILINE))
    assert sorted(rows) == sorted(schema.NAMES)
    making = {
        path
        for path, tree in trees()
        if any(isinstance(node, ast.FunctionDef) and "json" in node.name.split("_") for node in ast.walk(tree))
    }
    named = {f"sframe_unwind/{name}" for row in rows.values() for name in re.findall(r"`([\w/]+\.py)`", row)}
    assert named == making


def test_list_has_the_files_that_know_versions() -> None:
    found = {path for path, tree in trees() if not path.startswith(OTHER_FORMATS) and knows_versions(tree)}
    assert len(found) > 2
    assert listed(VERSION) == found


def in_json(path: Path) -> str:
    """Return a path as JSON has it, without the quotes; only one with characters beyond ASCII differs."""
    return json.dumps(str(path))[1:-1]


def test_new_architecture_needs_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine with the facts of AMD64 and the number of RISC-V is added in the files of the list."""
    program = build("callback")
    other = tmp_path / "program"
    content = bytearray(program.read_bytes())
    content[18:20] = (243).to_bytes(2, "little")
    other.write_bytes(content)
    commands = (["dump"], ["verify"], ["lint"], ["lookup", "0x401000"])

    def answers(path: Path) -> list[tuple[int, Any]]:
        found = []
        for name, *more in commands:
            status = main([name, *(["--json"] if name != "lookup" else []), str(path), *more])
            shown = capsys.readouterr().out.replace(in_json(path), "FILE")
            found.append((status, json.loads(shown) if name != "lookup" else shown))
        return found

    expected = answers(program)
    with monkeypatch.context() as patch:
        riscv = arch.BY_NAME["amd64"]._replace(elf_machine="EM_RISCV")
        patch.setattr(arch, "ARCHES", (riscv,))
        patch.setitem(ARCH_BY_ABI, AbiNumber.AMD64_ENDIAN_LITTLE, riscv)
        assert answers(other) == expected
    assert main(["dump", str(other)]) == 2
    assert "EM_RISCV" in capsys.readouterr().err


VERSION_4 = """
import sys
from sframe_unwind.sframe import constants

constants.VERSIONS = (1, 2, 3, 4)
constants.NEWEST = 4
for table in (constants.KNOWN_FLAGS, constants.FEATURES):
    table[4] = table[3]
from sframe_unwind.sframe import header

for table in (header.FDE_LAYOUTS, header.FDE_SIZES):
    table[4] = table[3]
from sframe_unwind.cli import main

sys.exit(main(sys.argv[1:]))
"""
"""Runs a command where a version 4 with the layout and the features of version 3 is in the files of the list."""


@pytest.mark.parametrize("command", ["dump", "verify"])
def test_new_version_needs_no_other_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, other = build("callback", "amd64", 3), tmp_path / "program"
    content = program.read_bytes()
    assert content.count(b"\xe2\xde\x03") == 1
    other.write_bytes(content.replace(b"\xe2\xde\x03", b"\xe2\xde\x04"))
    main([command, "--json", str(program)])
    expected = capsys.readouterr().out.replace(in_json(program), in_json(other))
    expected = expected.replace('"version": 3', '"version": 4')
    assert main([command, "--json", str(other)]) == 2
    line = [sys.executable, "-c", VERSION_4, command, "--json", str(other)]
    done = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.stdout == expected, done.stderr
