"""Judges unwind rules by the states of the code.

It offers :func:`whole_file.check_functions` for a file, :mod:`one_address` for debuggers, :class:`judgement.Judge` for
one rule in one state, and the results (:mod:`findings`).  Tables implement :class:`tables.RuleTable`.
"""
