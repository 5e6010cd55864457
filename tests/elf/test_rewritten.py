"""Files that were rewritten after linking are recognised by their sections, and those whose SFrame is newer are not."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.image.link_map import EXECUTABLE, loaded_images
from tests.elf.objects import run
from tests.process.programs import running
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


def test_the_image_is_found_in_memory(tmp_path: Path) -> None:
    """Its program headers are at the end of the file."""
    with running(bolted(compiled(tmp_path)), "1") as process:
        auxv = dict(struct.iter_unpack("<QQ", Path(f"/proc/{process}/auxv").read_bytes()))
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:

            def read(address: int, size: int) -> bytes:
                with suppress(OSError, OverflowError):
                    memory.seek(address)
                    if len(data := memory.read(size)) == size:
                        return data
                raise MemoryReadError(address, size)

            names = [loaded.name for loaded in loaded_images(read, auxv, "little")]
    assert names[0] == EXECUTABLE
    assert any(name.endswith("/libc.so.6") for name in names)


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
