"""Probes this machine: its kernel, its debuggers, and the parts of this package that are installed."""
