"""One inferior in the core's terms: its modules, registers, memory, symbols and functions."""
