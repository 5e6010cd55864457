"""Machine code as the judge of unwind tables: functions are interpreted abstractly, and rules carried out in the result.

Nothing here imports pyvex or capstone (the extra ``code``) before a :class:`sframe_unwind.code.lifting.Lifter` is made.
"""
