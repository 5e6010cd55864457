"""Run-time code that is registered through GDB's JIT interface (``__jit_debug_descriptor``)."""
