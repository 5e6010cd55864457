"""One program for each reader: it reads requests from standard input and writes answers; see :mod:`..protocol`."""
