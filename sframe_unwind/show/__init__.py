"""Shows functions of files: each instruction with the rules of SFrame, of DWARF CFI, and of the machine code."""
