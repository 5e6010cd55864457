"""Linux kernels in QEMU, stopped and dumped under both debuggers."""
