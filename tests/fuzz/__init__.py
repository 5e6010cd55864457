"""Damaged sections by the million: whatever the bytes are, the core answers or raises what it documents.

    python -m tests.fuzz --count 2000000

tries mutations of real sections and prints what it did; a failure is kept in a file and named by its number, and
`--number N` tries that one again.  `python -m tests.fuzz.guided` is the same target under atheris, which looks for
inputs that reach code not reached before.
"""
