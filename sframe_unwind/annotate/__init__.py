"""Writes the ``.cfi_*`` directives for functions in assembly, from their machine code."""
