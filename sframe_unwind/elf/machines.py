"""The names of ``e_machine`` and ``e_type`` in the ELF gABI, for messages and for :attr:`Arch.elf_machine`."""

from __future__ import annotations

_MACHINES = {
    0: "EM_NONE",
    2: "EM_SPARC",
    3: "EM_386",
    4: "EM_68K",
    6: "EM_IAMCU",
    8: "EM_MIPS",
    15: "EM_PARISC",
    18: "EM_SPARC32PLUS",
    20: "EM_PPC",
    21: "EM_PPC64",
    22: "EM_S390",
    23: "EM_SPU",
    40: "EM_ARM",
    41: "EM_ALPHA",
    42: "EM_SH",
    43: "EM_SPARCV9",
    44: "EM_TRICORE",
    45: "EM_ARC",
    50: "EM_IA_64",
    62: "EM_X86_64",
    75: "EM_VAX",
    76: "EM_CRIS",
    80: "EM_MMIX",
    83: "EM_AVR",
    87: "EM_V850",
    88: "EM_M32R",
    89: "EM_MN10300",
    92: "EM_OPENRISC",
    93: "EM_ARC_COMPACT",
    94: "EM_XTENSA",
    105: "EM_MSP430",
    106: "EM_BLACKFIN",
    113: "EM_ALTERA_NIOS2",
    138: "EM_LATTICEMICO32",
    140: "EM_TI_C6000",
    144: "EM_TI_PRU",
    164: "EM_QDSP6",
    167: "EM_NDS32",
    173: "EM_RX",
    174: "EM_METAG",
    175: "EM_MCST_ELBRUS",
    181: "EM_K10M",
    183: "EM_AARCH64",
    185: "EM_AVR32",
    188: "EM_TILEPRO",
    189: "EM_MICROBLAZE",
    190: "EM_CUDA",
    191: "EM_TILEGX",
    195: "EM_ARC_COMPACT2",
    203: "EM_XCORE",
    220: "EM_Z80",
    221: "EM_VISIUM",
    222: "EM_FT32",
    224: "EM_AMDGPU",
    243: "EM_RISCV",
    244: "EM_LANAI",
    247: "EM_BPF",
    251: "EM_VE",
    252: "EM_CSKY",
    258: "EM_LOONGARCH",
}
"""The machines of Linux, GCC and LLVM; the gABI has others."""
_NUMBERS = {name: number for number, name in _MACHINES.items()}
_TYPES = {0: "ET_NONE", 1: "ET_REL", 2: "ET_EXEC", 3: "ET_DYN", 4: "ET_CORE"}


def machine_name(number: int) -> str:
    """Return the name of an ``e_machine``: ``EM_X86_64``; of one that is not listed here, its number in digits."""
    return _MACHINES.get(number, str(number))


def machine_number(name: str) -> int:
    """Return the ``e_machine`` of a name.

    :raises KeyError: the name is not listed here: an architecture needs it (:attr:`Arch.elf_machine`).
    """
    return _NUMBERS[name]


def type_name(number: int) -> str:
    """Return the name of an ``e_type``: ``ET_REL``; of another one, its number in digits."""
    return _TYPES.get(number, str(number))
