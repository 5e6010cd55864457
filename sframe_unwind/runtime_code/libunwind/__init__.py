"""Run-time code that is registered with libunwind (``_U_dyn_register``), and its dynamic unwind info."""
