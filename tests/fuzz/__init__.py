"""Fuzzing with damaged sections: for any bytes, the core returns a result or raises a documented error.

    python -m tests.fuzz --count 2000000

tries mutations of real sections and prints what it did; a failure is kept in a file and named by its number, and
`--number N` tries that one again.  `python -m tests.fuzz.guided` is the same target under atheris, which looks for
inputs that reach code not reached before.
"""
