"""The names of the numbers in ELF headers (System V gABI; the machines' psABI supplements; binutils' ``elf/common.h``).

A number without a name here stays a number.
"""

from __future__ import annotations

FILE_TYPES = {0: "ET_NONE", 1: "ET_REL", 2: "ET_EXEC", 3: "ET_DYN", 4: "ET_CORE"}
"""``e_type``."""
MACHINES = {
    2: "EM_SPARC",
    3: "EM_386",
    8: "EM_MIPS",
    20: "EM_PPC",
    21: "EM_PPC64",
    22: "EM_S390",
    40: "EM_ARM",
    43: "EM_SPARCV9",
    62: "EM_X86_64",
    183: "EM_AARCH64",
    243: "EM_RISCV",
    247: "EM_BPF",
    258: "EM_LOONGARCH",
}
"""``e_machine``: those of SFrame's ABIs, and others that a message may name."""
SECTION_TYPES = {
    1: "SHT_PROGBITS",
    2: "SHT_SYMTAB",
    3: "SHT_STRTAB",
    4: "SHT_RELA",
    7: "SHT_NOTE",
    8: "SHT_NOBITS",
    9: "SHT_REL",
    11: "SHT_DYNSYM",
    17: "SHT_GROUP",
    18: "SHT_SYMTAB_SHNDX",
}
"""``sh_type``."""
SEGMENT_TYPES = {1: "PT_LOAD", 4: "PT_NOTE", 6: "PT_PHDR"}
"""``p_type``."""

SHT_GNU_SFRAME, PT_GNU_SFRAME = 0x6FFFFFF4, 0x6474E554
"""Section and segment of SFrame.  Binutils before 2.45 write the section type PROGBITS."""

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS, SHF_COMPRESSED = 0x1, 0x2, 0x4, 0x400, 0x800
"""Flags of sections."""
PF_X, PF_W, PF_R = 1, 2, 4
"""Flags of segments."""
