"""Tests of the GDB plugin on every ABI, SFrame version and instruction, mostly under emulation."""
