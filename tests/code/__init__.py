"""The machine code as the judge: planted errors, mutated rows, hostile code, and the command that shows it."""

from tests.missing import package_needed

# Its wheels are for Python 3.10 and later.
package_needed("pyvex")
