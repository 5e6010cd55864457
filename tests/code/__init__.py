"""The machine code as the judge: planted errors, mutated rows, hostile code, and the command that shows it."""

import pytest

# Its wheels are for Python 3.10 and later.
pytest.importorskip("pyvex")
