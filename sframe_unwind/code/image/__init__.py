"""Presents the code of a file, or of a process: its bytes, functions, stubs and tables.

It offers :class:`code_image.CodeImage`, which :func:`elf_image.image_of` makes from an ELF file; the ranges of
functions (:mod:`ranges`); and the tables of exceptions, jumps and static branches.
"""
