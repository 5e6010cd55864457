"""Checks against machine code: planted errors, mutated rows, hostile code, and the command that reports them."""

from tests.missing import package_needed

# The wheels of its packages are for Python 3.10 and later.
package_needed("pyvex")
