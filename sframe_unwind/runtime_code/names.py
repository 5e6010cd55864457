"""The symbols of the lists in which a process registers code."""

LIST_SYMBOL, LIST_FUNCTION = "_U_dyn_info_list", "_U_dyn_info_list_addr"
"""libunwind's list, and the function that returns its address."""
JIT_SYMBOL = "__jit_debug_descriptor"
"""The list of GDB's JIT interface."""
