"""Functions that run inside GDB."""
