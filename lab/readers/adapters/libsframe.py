"""GNU libsframe, by ctypes: ``python -m lab.readers.adapters.libsframe LIBRARY [rows]``.

With ``rows``, it also reads the rows of all functions one by one, as readelf and linkers do.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

from lab.readers.notation import OUTERMOST, SAME, place, row
from lab.readers.protocol import RefusedError, Request, guarded, serve
from sframe_unwind.address import RangeMap

_ENTRY_SIZE = 64
"""A size in bytes: larger than ``sframe_frame_row_entry`` in any version."""
_MAX_ROWS = 300
"""How many rows of a function are read one by one: for each of them the library begins with the first row."""
_FLEXIBLE = 1
_SP = 1
"""``SFRAME_BASE_REG_SP``."""
REGISTERS = {1: (29, 31), 2: (29, 31), 3: (6, 7), 4: (11, 15)}
"""The DWARF numbers of frame pointer and stack pointer, by ABI."""
_S390X = 4
UNKNOWN = (-1, -1)
"""The numbers for an ABI that is not known; libsframe does not ask for them."""


class Library:
    """One version of libsframe."""

    def __init__(self, path: Path, reads_rows: bool = False) -> None:
        self._calls = ctypes.CDLL(str(path))
        self._reads_rows = reads_rows
        self._calls.sframe_decode.restype = ctypes.c_void_p
        self._calls.sframe_errmsg.restype = ctypes.c_char_p
        # The types of FDE came with version 3 of the format, which libsframe.so.3 reads.
        numbers = re.findall(r"\.so\.(\d+)", path.name)
        self._knows_types = bool(numbers) and int(numbers[0]) >= 3
        self._kinds: RangeMap[int] | None = None
        self._pc = ctypes.c_int64 if self._knows_types else ctypes.c_int32

    def read(self, request: Request) -> list[Any]:
        """Return the row for each address."""
        data, error = guarded(request.section), ctypes.c_int()
        context = self._calls.sframe_decode(data, ctypes.c_size_t(len(data)), ctypes.byref(error))
        if not context:
            raise RefusedError(self._calls.sframe_errmsg(error.value).decode())
        handle = ctypes.c_void_p(context)
        if self._reads_rows:
            self._read_rows(handle)
        return [self._row(handle, pc - request.address) for pc in request.pcs]

    def _read_rows(self, context: ctypes.c_void_p) -> None:
        entry = ctypes.create_string_buffer(_ENTRY_SIZE)
        for number in range(self._calls.sframe_decoder_get_num_fidx(context)):
            for index in range(_MAX_ROWS):
                if self._calls.sframe_decoder_get_fre(context, number, index, entry):
                    break

    def _row(self, context: ctypes.c_void_p, offset: int) -> Any:
        """Return the row for an address.

        :param offset: from the start of the section, in bytes.
        """
        entry = ctypes.create_string_buffer(_ENTRY_SIZE)
        if self._calls.sframe_find_fre(context, self._pc(offset), entry):
            return None
        error = ctypes.c_int()
        if self._knows_types and self._calls.sframe_fre_get_ra_undefined_p(context, entry, ctypes.byref(error)):
            return OUTERMOST
        kind = self._kind(context, offset)
        abi = self._calls.sframe_decoder_get_abi_arch(context) & 0xFF
        is_sp = self._calls.sframe_fre_get_base_reg_id(entry, ctypes.byref(error)) & 0xFF == _SP
        modes: list[tuple[int | None, bool]] = [(REGISTERS.get(abi, UNKNOWN)[is_sp], False), (None, True), (None, True)]
        if kind == _FLEXIBLE:
            modes = self._controls(entry)
        values = [self._offset(what, context, entry, kind) for what in ("cfa", "ra", "fp")]
        if values[0] is None:
            return {"error": "no CFA"}
        if values[1] is None and not self._knows_types:  # libsframe 2.40 leaves the fixed offset to its caller
            fixed = self._calls.sframe_decoder_get_fixed_ra_offset(context) & 0xFF
            values[1] = (fixed ^ 0x80) - 0x80 or None
        if abi == _S390X and not kind and values[1] == 0:  # SFRAME_FRE_RA_OFFSET_INVALID: not saved
            values[1] = None
        texts = [SAME if value is None else place(base, value, mem) for value, (base, mem) in zip(values, modes)]
        signed = bool(self._calls.sframe_fre_get_ra_mangled_p(context, entry, ctypes.byref(error)) & 0xFF)
        return row(texts, signed)

    def _offset(self, what: str, context: ctypes.c_void_p, entry: ctypes.Array[ctypes.c_char], kind: int) -> int | None:
        error = ctypes.c_int()
        call = getattr(self._calls, f"sframe_fre_get_{what}_offset")
        value = call(context, entry, *([kind] if self._knows_types else []), ctypes.byref(error))
        return None if error.value else int(value)

    def _controls(self, entry: ctypes.Array[ctypes.c_char]) -> list[tuple[int | None, bool]]:
        """Return base and place of CFA, RA and FP from the control words of a flexible row."""
        modes: list[tuple[int | None, bool]] = []
        index = 0
        for _ in range(3):
            error = ctypes.c_int()
            control = self._calls.sframe_get_fre_udata(entry, index, ctypes.byref(error)) & 0xFFFFFFFF
            if error.value or not control:
                modes.append((None, True))  # as the fixed offsets of the header are
                index += 1
            else:
                modes.append((control >> 3 if control & 1 else None, bool(control & 2)))
                index += 2
        return modes

    def _kind(self, context: ctypes.c_void_p, offset: int) -> int:
        """Return the type of the FDE that covers an address."""
        if not self._knows_types:
            return 0
        if self._kinds is None:
            self._kinds = self._all_kinds(context)
        return self._kinds.get(offset) or 0

    def _all_kinds(self, context: ctypes.c_void_p) -> RangeMap[int]:
        """Return the types of all FDEs."""
        size, start, info2, error = ctypes.c_uint32(), ctypes.c_int64(), ctypes.c_uint8(), ctypes.c_int()
        is_pcrel = self._calls.sframe_decoder_get_flags(context) & 4
        ranges = []
        for number in range(self._calls.sframe_decoder_get_num_fidx(context)):
            if self._calls.sframe_decoder_get_funcdesc_v3(
                context, number, None, ctypes.byref(size), ctypes.byref(start), None, ctypes.byref(info2), None
            ):
                continue
            field = self._calls.sframe_decoder_get_offsetof_fde_start_addr(context, number, ctypes.byref(error))
            first = start.value + (field if is_pcrel else 0)
            ranges.append((first, first + size.value, info2.value & 0x1F))
        return RangeMap(ranges)


if __name__ == "__main__":
    serve(Library(Path(sys.argv[1]), sys.argv[2:] == ["rows"]).read)
