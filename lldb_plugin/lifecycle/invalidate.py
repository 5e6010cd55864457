"""Makes LLDB forget its frames; its interface has no function for this.

LLDB forgets its frames when the address of a section changes.  So the plugin adds a file with one section, and moves
that section to and fro at addresses that no program uses.  Registering the frame provider anew would also help, but
would make LLDB show every thread.
"""

from __future__ import annotations

import functools
import struct

import lldb

_PLACES = (0xFFFF_FFFE_0000_0000, 0xFFFF_FFFE_0000_1000)
_NAMES = b"\0.shstrtab\0.room\0"
_HEADER, _SECTION = 64, 64


def _image() -> bytes:
    """Return an ELF file with one section that has a place in memory."""
    names_at = _HEADER + 3 * _SECTION
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, _HEADER, 0, _HEADER, 56, 0, _SECTION, 3, 1)
    names = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, names_at, len(_NAMES), 0, 0, 1, 0)
    room = struct.pack("<IIQQQQIIQQ", 11, 1, 2, 0, 0, _HEADER, 0, 0, 1, 0)
    return header + bytes(_SECTION) + names + room + _NAMES


class Invalidation:
    """The section that moves, which is made when it is first needed."""

    def forget_frames(self, target: lldb.SBTarget) -> bool:
        """Make LLDB ask again for all frames of a target; return whether that worked."""
        section = self._section()
        if section is None:
            return False
        now = section.GetLoadAddress(target)
        moved = target.SetSectionLoadAddress(section, _PLACES[now == _PLACES[0]])
        return bool(moved.Success())

    @functools.cached_property
    def _module(self) -> lldb.SBModule:
        import tempfile  # not earlier: the plugin must load fast

        with tempfile.NamedTemporaryFile(prefix="sframe-unwind-", suffix=".so") as file:
            file.write(_image())
            file.flush()
            spec = lldb.SBModuleSpec()
            spec.SetFileSpec(lldb.SBFileSpec(file.name))
            module = lldb.SBModule(spec)
            module.GetNumSections()  # now, while the file is there
            return module

    def _section(self) -> lldb.SBSection | None:
        module = self._module
        sections = (module.GetSectionAtIndex(index) for index in range(module.GetNumSections()))
        return next((section for section in sections if section.GetByteSize()), None)
