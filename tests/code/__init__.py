"""Checks against machine code, in folders named after the packages of `sframe_unwind.code`; whole files are here."""

from tests.missing import package_needed

# The wheels of its packages are for Python 3.10 and later.
package_needed("pyvex")
