"""The part that runs inside GDB; LLDB's part is in ``tests/lldb/inside/random_stops.py``."""
