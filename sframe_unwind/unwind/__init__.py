"""Unwinding: one step from a frame to its caller, lookup in the modules of a process, and the walk of a whole stack."""
