"""Machine code as the judge of unwind tables: it is interpreted abstractly, and rules are carried out in the result.

Nothing here imports pyvex or capstone (the extra ``code``) before :func:`sframe_unwind.code.lifting.check_installed`,
with which making a :class:`sframe_unwind.code.lifting.Lifter` begins.
"""
