"""The SFrame format: decoding and encoding, one module per on-disk record.

Decoding converts versions 1, 2 and 3 to one form, so the other packages do not depend on the version.

The modules cite the specification by edition: "V2" is the manual of binutils 2.41 to 2.44, "V2 errata 1" the manual
of binutils 2.45, and "version 3" the manual of binutils 2.46.
"""
