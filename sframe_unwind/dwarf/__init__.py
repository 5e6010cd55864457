"""DWARF CFI as unwind rules, decoded by pyelftools."""
