"""From a frame to its caller: one step, the modules of a process, and the walk over a stack."""
