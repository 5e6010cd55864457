"""Functions made by chance, rows as one execution suggests them, and QEMU as the judge of what is proved of these."""
