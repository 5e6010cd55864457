"""Source files, lines and inlined functions, from the DWARF debug information of a file (versions 2 to 5)."""
