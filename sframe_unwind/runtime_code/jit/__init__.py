"""GDB's JIT interface (``__jit_debug_descriptor``)."""
