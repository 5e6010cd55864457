"""Mode auto: no frame, register or variable is worse than GDB's own, and SFrame goes on where GDB cannot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gdb.compiling import compiled
from tests.gdb.debug_frame_builds import compressed
from tests.gdb.driver import Debugger, batch
from tests.gdb.stacks import names_in
from tests.gdb.typed import typed
from tests.missing import toolchain_needed
from tests.rewriting.bolt import bolted
from tests.rewriting.bolt import compiled as for_bolt
from tests.rewriting.moved import moved

_FIBER = ("break work", "run", "bt", "up 2", "info frame", "frame function fiber_main", "info frame", "finish")


def _names(output: str) -> list[str]:
    """Return the names of the frames; the first one is behind the prompt."""
    return names_in(output.replace("(gdb) ", ""))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_44_return_address_that_the_cfi_marks_as_undefined(
    debugger: Debugger, version: int, tmp_path: Path
) -> None:
    """GNU as before 2.46 writes rows with a return address there."""
    executable = compiled("leaving.c", tmp_path, "-O1", version=version)
    alone = typed(debugger, executable, _FIBER, plugin=False)
    assert "#1 " in alone
    assert typed(debugger, executable, _FIBER) == alone


def test_item_45_cfi_that_gdb_was_told_not_to_read(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("padded.c", tmp_path, "-fno-stack-protector", "-fomit-frame-pointer")
    lines = ("break leaf", "run", "bt")
    expected = _names(typed(debugger, executable, lines, plugin=False))
    shown = _names(typed(debugger, executable, lines, more=("-readnever",)))
    assert len(expected) > 2
    assert shown[: len(expected)] == expected
    assert _names(typed(debugger, executable, lines, plugin=False, more=("-readnever",))) != shown


def test_item_45_library_that_gdb_has_not_read(debugger: Debugger, tmp_path: Path) -> None:
    executable = compiled("plugs.c", tmp_path)
    library = compiled("plug.c", tmp_path, "-shared", "-fPIC", "-fomit-frame-pointer").rename(tmp_path / "plug.so")
    lines = ("break back", "run", "bt 4")
    read = typed(debugger, executable, lines, plugin=False, arguments=[str(library)])
    unread = typed(debugger, executable, ("set auto-solib-add off", *lines), arguments=[str(library)])
    assert _names(read)[:4] == ["back", "inner", "plug", "main"]
    assert _names(unread)[0] == "back"
    assert _names(unread)[3] == "main"


@pytest.mark.usefixtures("fixed_addresses")
def test_item_44_file_that_bolt_has_rewritten(debugger: Debugger, tmp_path: Path) -> None:
    with toolchain_needed():
        executable = bolted(for_bolt(tmp_path))
    lines = ("break stop_here", "run", "bt", "finish", "continue", "bt")
    alone = typed(debugger, executable, lines, plugin=False)
    assert _names(alone)[-1] == "main"
    assert typed(debugger, executable, lines) == alone
    said = batch(debugger, *lines[:2], "sframe status", executable=executable)
    assert "not used, the first at 0x" in said
    assert "rewritten by BOLT" in said


@pytest.mark.parametrize("mode", ["auto", "always"])
@pytest.mark.usefixtures("fixed_addresses")
def test_item_44_sframe_that_was_moved_is_not_used(debugger: Debugger, mode: str, tmp_path: Path) -> None:
    """In each mode, and one line says so: the section describes other addresses than those of its functions."""
    _, executable = moved(tmp_path)
    lines = ("break f0", "run", "bt 5", "bt -3", "up", "info frame", "finish", "bt 2")
    alone = typed(debugger, executable, lines, plugin=False)
    assert _names(alone)[-1] == "f3"
    shown = typed(debugger, executable, lines, more=("-iex", f"set sframe mode {mode}"))
    told = re.findall(r"sframe: .*: SFrame data not used: the section was moved after linking: .*\n", shown)
    assert len(told) == 1, shown
    assert shown.replace(told[0], "") == alone


@pytest.mark.usefixtures("fixed_addresses")
def test_item_45_compressed_cfi_that_only_gdb_can_read(debugger: Debugger, tmp_path: Path) -> None:
    executable = compressed("zstd")(tmp_path)
    lines = ("break leaf", "run", "up", "info locals", "info registers rbx rbp r12", "up", "info registers rbx")
    alone = typed(debugger, executable, lines, plugin=False)
    shown = typed(debugger, executable, lines)
    told = f"sframe: {executable}: only GDB can decompress its .debug_frame: frames that this may describe are GDB's\n"
    assert shown.count(told) == _is_beyond(debugger, executable)
    assert shown.replace(told, "") == alone


def _is_beyond(debugger: Debugger, executable: Path) -> bool:
    """Return whether GDB's Python cannot decompress the CFI of a program; 3.14 can."""
    lines = (
        "python from sframe_unwind.debugger import debug_files, debug_frame",
        "python from sframe_unwind.arch import BY_NAME",
        f"python files = [debug_files.DebugFile({str(executable)!r}, '')]",
        "python print('beyond', debug_frame.is_beyond_this_python(files, BY_NAME['amd64']))",
    )
    return "beyond True" in batch(debugger, *lines)
