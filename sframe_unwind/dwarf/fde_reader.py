"""One FDE of a process's memory, decoded by itself: what unwinding one frame needs of ``.eh_frame``.

pyelftools decodes whole sections.  It is given a section made of two records: the FDE and the CIE that it refers to,
placed so that addresses relative to their own place come out right.
"""

from __future__ import annotations

import struct
from io import BytesIO

from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import CfiFunction, Row, decode, to_rule
from sframe_unwind.dwarf.expression import UnsupportedExpressionError
from sframe_unwind.errors import FormatError, SFrameError, UnsupportedError
from sframe_unwind.image.eh_frame import augmentation_fields
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory
from sframe_unwind.unwind_rule import UnwindRule

_MAX_RECORD = 1 << 18
"""Length in bytes beyond which a record is taken for garbage."""
_EXTENDED = 0xFFFFFFFF
_LENGTH_SIZE, _CIE_POINTER_SIZE = 4, 4
_OMITTED = 0xFF
_VALUE_FORMAT, _RELATIVE_TO = 0x0F, 0xF0
_ABSOLUTE, _PCREL, _DATAREL = 0x00, 0x10, 0x30


class FdeReader:
    """Decodes FDEs in the form that ``.eh_frame`` has them.

    :param read: reads the memory that they are in.
    :param arch: of the code that they describe.
    :param data_base: what addresses relative to "data" (``DW_EH_PE_datarel``) count from.
    """

    def __init__(self, read: ReadMemory, arch: Arch, data_base: int = 0) -> None:
        self._read = read
        self._arch = arch
        self._data_base = data_base
        self._mark = STRUCT_MARKS[arch.byteorder]
        self._structs = DWARFStructs(little_endian=arch.byteorder == "little", dwarf_format=32, address_size=8)
        self._cies: dict[int, tuple[bytes, int]] = {}

    def function_at_record(self, address: int) -> CfiFunction:
        """Return the rows of the FDE whose record, beginning with its length, is at an address.

        :raises FormatError: there is no FDE, or it is malformed.
        :raises MemoryReadError: it cannot be read.
        """
        body_address, body = self._record(address, "FDE")
        distance = self._word(body)
        if not distance:
            raise FormatError(f"expected an FDE at {address:#x}, found a CIE")
        cie, relative_to = self._cie(body_address - distance)
        record = struct.pack(self._mark + "II", len(body), len(cie) + _CIE_POINTER_SIZE) + body[_CIE_POINTER_SIZE:]
        section_address = body_address - _LENGTH_SIZE - len(cie)
        try:
            section = CallFrameInfo(BytesIO(cie + record), len(cie + record), section_address, self._structs, True)
            entry = section.get_entries()[1]
            if not isinstance(entry, FDE):
                raise FormatError("it decodes as another kind of record")
            if relative_to == _DATAREL:
                entry.header["initial_location"] += self._data_base
            entry.header["initial_location"] &= ADDRESS_MASK
            return decode(entry, self._arch)
        except SFrameError as error:
            raise FormatError(f"FDE at {address:#x}: {error}") from error
        except Exception as error:
            # pyelftools lets errors of many types escape on malformed data, assertions among them.
            raise FormatError(f"FDE at {address:#x}: {str(error) or type(error).__name__}") from error

    def rule(self, row: Row, pc: int) -> UnwindRule:
        """Return the rule that a row amounts to at an address.

        :raises UnsupportedError: it is an expression that a rule cannot express.
        :raises FormatError: the expression is malformed.
        """
        try:
            return to_rule(self._structs, self._arch, row, pc)
        except UnsupportedExpressionError as error:
            raise UnsupportedError(f"the DWARF rule at {pc:#x} is more than a place: {error}") from error
        except Exception as error:  # see function_at_record
            raise FormatError(f"DWARF rule at {pc:#x}: {str(error) or type(error).__name__}") from error

    def _record(self, address: int, what: str) -> tuple[int, bytes]:
        """Return what the length of a record counts, and the address where that begins."""
        length, start = self._word(self._read(address, _LENGTH_SIZE)), address + _LENGTH_SIZE
        if length == _EXTENDED:
            (length,) = struct.unpack(self._mark + "Q", self._read(start, 8))
            start += 8
        if not _CIE_POINTER_SIZE <= length <= _MAX_RECORD:
            raise FormatError(f"expected {what} at {address:#x}, found a record of {length} bytes")
        return start, self._read(start, length)

    def _word(self, data: bytes) -> int:
        return int(struct.unpack_from(self._mark + "I", data)[0])

    def _cie(self, address: int) -> tuple[bytes, int]:
        """Return a CIE, and what the addresses in its FDEs are relative to."""
        if address not in self._cies:
            _, body = self._record(address, "a CIE")
            if self._word(body):
                raise FormatError(f"expected a CIE at {address:#x}, found an FDE")
            try:
                patched, relative_to = _plain(body)
            except FormatError as error:
                raise FormatError(f"CIE at {address:#x}: {error}") from error
            self._cies[address] = struct.pack(self._mark + "I", len(body)) + patched, relative_to
        return self._cies[address]


def _plain(cie: bytes) -> tuple[bytes, int]:
    """Return a CIE without what pyelftools cannot decode, and what the addresses in its FDEs are relative to.

    The pointers to language-specific data, of no use here, are omitted; addresses relative to anything but their own
    place are declared to be absolute.
    """
    fields = augmentation_fields(cie)
    if "R" not in fields:
        raise UnsupportedError("it does not say how its FDEs' addresses are written")
    patched = bytearray(cie)
    encoding = cie[fields["R"]]
    relative_to = encoding & _RELATIVE_TO
    if relative_to not in (_ABSOLUTE, _PCREL, _DATAREL):
        raise UnsupportedError(f"pointer encoding {encoding:#x}")
    if relative_to == _DATAREL:
        patched[fields["R"]] = encoding & _VALUE_FORMAT
    if "L" in fields:
        patched[fields["L"]] = _OMITTED
    return bytes(patched), relative_to
