"""Rows of many functions of one table (V2 errata 1, 2.3 and 2.4; version 3), at the least cost.

Of an entry only the fields that its rows depend on are looked at, which takes two thirds of the time of
``Table.function`` and ``Table.raw_rows``.  Those say what is wrong with a function; this module does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import Data
from sframe_unwind.sframe import fde as fdes
from sframe_unwind.sframe import fre
from sframe_unwind.sframe.constants import FdeType
from sframe_unwind.sframe.header import FDE_SIZES, Header


class PlainRows:
    """The rows of functions that are not in mask FDEs.

    :param data: the whole section.
    :param base: section offset of the header, in bytes.
    """

    def __init__(self, data: Data, base: int, header: Header) -> None:
        self._data = data
        self._entries = base + header.fdes_start
        self._entry_size = FDE_SIZES[header.version]
        self._entry = fdes.STRUCTS[header.version, header.byteorder]
        self._has_records = header.version == 3
        self._record = fdes.ATTRIBUTES[header.byteorder]
        self._fres = base + header.fres_start
        self._fres_end = base + header.fres_end
        self._byteorder = header.byteorder

    def read(
        self, number: int, interpreters: Sequence[fre.Interpreter[fre.Interpreted]]
    ) -> tuple[list[int], list[fre.Interpreted]] | None:
        """Return the start offsets (in bytes from the start of the function) and the interpreted rows of a function.

        :param number: number of the FDE under the header, from 0.
        :param interpreters: for each :class:`FdeType`, what makes something of the bytes of a row.
        :returns: ``None``: the function is malformed, or in a mask FDE.
        """
        at = self._entries + number * self._entry_size
        entry = self._entry.unpack(self._data[at : at + self._entry.size])
        first = self._fres + entry[2]
        if self._has_records:
            record = first
            first += fdes.ATTRIBUTE_SIZE
            if first > self._fres_end:
                return None
            num_rows, info, info2, _ = self._record.unpack(self._data[record:first])
            fde_type = info2 & fdes.FDE_TYPE
        else:
            num_rows, info, fde_type = entry[3], entry[4], FdeType.DEFAULT
        kind = info & (fdes.PC_TYPE | fdes.FRE_TYPE)
        if kind >= len(fdes.ADDRESS_SIZES) or fde_type >= len(interpreters):
            return None
        try:
            return fre.decode(
                self._data,
                first,
                self._fres_end,
                num_rows,
                fdes.ADDRESS_SIZES[kind],
                self._byteorder,
                interpreters[fde_type],
            )
        except FormatError:
            return None
