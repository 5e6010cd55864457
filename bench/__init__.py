"""Benchmarks, each compared with its counterpart in the same run: `python -m bench`.  Each part has one module."""
