"""Recordings of `perf`, with the stacks of `perf script`."""
