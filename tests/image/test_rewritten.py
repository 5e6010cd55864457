"""Files that were rewritten after linking are recognised by their sections, and those whose SFrame is newer are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.image.rewritten import rewriter
from tests.elf.objects import run
from tests.rewriting.bolt import bolted, compiled

LINKED = {".text": 0x1000, ".eh_frame": 0x2000, ".sframe": 0x2400, ".data": 0x4000}
BY_BOLT = {**LINKED, ".bolt.org.eh_frame": 0x2000, ".eh_frame": 0x200000}


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({}, ""),
        (LINKED, ""),
        ({**LINKED, ".text.cold": 0x200000}, ""),
        (BY_BOLT, "rewritten by BOLT after linking (.bolt.org.eh_frame)"),
        ({**BY_BOLT, ".note.bolt_info": 0}, "rewritten by BOLT after linking (.bolt.org.eh_frame, .note.bolt_info)"),
        ({**LINKED, ".note.bolt_info": 0}, "rewritten by BOLT after linking (.note.bolt_info)"),
        ({**BY_BOLT, ".bolt.org.sframe": 0x2400, ".sframe": 0x200400}, ""),
        ({**BY_BOLT, ".note.bolt_info": 0, ".sframe": 0x400000}, ""),
    ],
)
def test_the_names_of_sections_tell(sections: dict[str, int], words: str) -> None:
    assert rewriter(sections) == words


def rewriter_of(path: Path) -> str:
    with elf.opened(path) as binary:
        return binary.rewriter


@pytest.mark.parametrize("flags", [(), ("-Wl,--emit-relocs",), ("-static", "-Wl,--emit-relocs")], ids=" ".join)
def test_what_bolt_has_written_is_recognised(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = compiled(tmp_path, 3, *flags)
    assert not rewriter_of(program)
    rewritten = bolted(program)
    assert rewriter_of(rewritten).startswith("rewritten by BOLT after linking (.bolt.org.")
    run("strip", rewritten)
    assert ".bolt.org.eh_frame" in rewriter_of(rewritten)


def test_sframe_that_was_made_from_the_new_cfi_is_not_stale(tmp_path: Path) -> None:
    rewritten, copy = bolted(compiled(tmp_path, 3, "-Wl,--emit-relocs")), tmp_path / "copy"
    assert main(["convert", str(rewritten), "--from", "dwarf", "-o", str(copy)]) == 0
    assert rewriter_of(rewritten)
    assert not rewriter_of(copy)
