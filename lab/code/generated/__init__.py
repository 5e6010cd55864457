"""Random functions with rows from one execution; QEMU checks the proofs about these rows."""
