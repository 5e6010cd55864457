"""libunwind's dynamic unwind info (``_U_dyn_register``)."""
