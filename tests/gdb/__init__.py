"""Tests of the GDB plugin in real GDBs, on the samples."""
