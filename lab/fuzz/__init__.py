"""Fuzzing with damaged sections: for any bytes, the core returns a result or raises a documented error.

    python -m lab.fuzz --count 2000000

tries mutations of real sections and prints the results.  A failing input is kept in a file and named by its number,
and `--number N` tries it again.  `python -m lab.fuzz.guided` is the same target under atheris, which looks for
inputs that reach new code.
"""
