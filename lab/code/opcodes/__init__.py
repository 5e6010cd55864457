"""Counts the opcodes of GNU as whose effects are executed, and those whose effects are unknown."""
