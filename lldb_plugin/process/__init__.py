"""One process in the core's terms: its memory, registers, modules and code."""
