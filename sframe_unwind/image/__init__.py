"""ELF images in the memory of a process.  This package opens no files."""
