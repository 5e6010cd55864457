"""Makes the column of the machine code in a listing: for each value, the rule of a table that the code proves."""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.code.judge.judgement import Judgement, Judgements
from sframe_unwind.report.rule_cells import VALUES, RuleCells

_REFUTED, _NOT_KNOWN = "!", "?"


def proved_cells(judged: Sequence[tuple[RuleCells, Judgements]]) -> RuleCells | None:
    """Return the columns of the code's rule; ``!``: the code refutes the values of all tables; ``?``: it does not tell.

    :param judged: the rule of each table, with the verdict on it.
    :return: ``None``: there is no verdict.
    """
    return RuleCells(*(_cell(what, judged) for what in VALUES)) if judged else None


def _cell(what: str, judged: Sequence[tuple[RuleCells, Judgements]]) -> str:
    found = [getattr(judgements, what) for _, judgements in judged]
    if Judgement.PROVED in found:
        return str(getattr(judged[found.index(Judgement.PROVED)][0], what))
    return _REFUTED if Judgement.WRONG in found else _NOT_KNOWN
