"""Every ABI, version and instruction: GDB on the samples of the machines that this one is not, and on its own."""
