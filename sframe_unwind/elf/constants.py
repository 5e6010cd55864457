"""Numbers of the ELF format (gABI, and the GNU extensions that ``elf.h`` lists)."""

from __future__ import annotations

ARCHIVE_MAGIC, THIN_ARCHIVE_MAGIC = b"!<arch>\n", b"!<thin>\n"

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
"""Types of files."""

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH = 1, 2, 3, 4, 5
SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 7, 8, 9, 11
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
SHT_GROUP, SHT_SYMTAB_SHNDX = 17, 18
SHT_GNU_SFRAME, SHT_GNU_HASH = 0x6FFFFFF4, 0x6FFFFFF6
"""Types of sections.  Binutils before 2.45 give ``.sframe`` the type PROGBITS."""

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK, SHF_TLS, SHF_COMPRESSED = 1, 2, 4, 0x40, 0x400, 0x800
"""Flags of sections."""

SHN_LORESERVE, SHN_XINDEX = 0xFF00, 0xFFFF
"""Numbers from ``SHN_LORESERVE`` on are not sections.  ``SHN_XINDEX`` stands for a number that does not fit: that of
the section with the names is in the first section header, that of a symbol's section in ``SHT_SYMTAB_SHNDX``."""

ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD = 1, 2
"""Types of compressed sections (``ch_type``)."""

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR = 1, 2, 3, 4, 6
PT_GNU_EH_FRAME, PT_GNU_PROPERTY, PT_GNU_SFRAME = 0x6474E550, 0x6474E553, 0x6474E554
"""Types of segments."""

PF_X, PF_W, PF_R = 1, 2, 4
"""Flags of segments."""

DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_DEBUG, DT_GNU_HASH = 0, 4, 5, 6, 10, 21, 0x6FFFFEF5
"""Tags of entries of the dynamic section."""

PN_XNUM = 0xFFFF
"""Value of the number of program headers if the number does not fit."""

FILE_HEADER, PROGRAM_HEADER, SECTION_HEADER = "16sHHIQQQIHHHHHH", "IIQQQQQQ", "IIQQQQIIQQ"
"""The fields of ``Elf64_Ehdr``, ``Elf64_Phdr`` and ``Elf64_Shdr`` as :mod:`struct` formats."""
SYMBOL = "IBBHQQ"
"""The fields of ``Elf64_Sym`` as a :mod:`struct` format: name, info, other, section, value, size."""
ENTRY = "QQq"
"""The fields of ``Elf64_Rela`` as a :mod:`struct` format: offset, info, addend."""
