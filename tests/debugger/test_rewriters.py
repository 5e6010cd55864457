"""Whether a module's file was rewritten after linking, by the files that a debugger has read for it."""

from __future__ import annotations

from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.rewriters import rewriter_of_files
from tests.elf.objects import run
from tests.rewriting.bolt import bolted, compiled

AMD64 = BY_NAME["amd64"]


def build_id(path: Path) -> str:
    with elf.opened(path) as binary:
        return binary.build_id


def test_files_that_a_debugger_has_read(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    rewritten, debug, damaged = bolted(program), tmp_path / "debug", tmp_path / "damaged"
    run("objcopy", "--only-keep-debug", rewritten, debug)
    damaged.write_bytes(rewritten.read_bytes()[:2000])
    own = build_id(rewritten)

    def said(*files: tuple[Path, str]) -> bool:
        return rewriter_of_files([DebugFile(str(path), known) for path, known in files], AMD64).startswith("rewritten")

    assert said((rewritten, own))
    assert said((rewritten, ""))  # the debugger knows no build ID
    assert said((tmp_path / "none", own), (damaged, own), (program, build_id(program)), (debug, own))
    assert not said((program, build_id(program)))
    assert not said((rewritten, own[::-1]))  # another file is at the path now
    assert not said((tmp_path / "none", own), (damaged, own), (tmp_path, own), (Path("a\0b"), own))
    assert not rewriter_of_files([DebugFile(str(rewritten), own)], BY_NAME["s390x"])
