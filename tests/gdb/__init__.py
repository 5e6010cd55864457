"""The GDB plugin in real GDBs, on the samples."""
