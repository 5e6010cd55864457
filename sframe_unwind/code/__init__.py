"""Machine code as the judge of unwind tables: it is interpreted abstractly, and rules are carried out in the result.

Nothing here imports pyvex or capstone (the extra ``code``) before a :class:`sframe_unwind.code.lifting.Lifter` is made.
"""
