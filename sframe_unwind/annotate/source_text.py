"""The text of an assembly source: where lines can be inserted that the assembler then reads once."""

from __future__ import annotations

import re

_BODY = re.compile(r"\s*\.(macro|rept|irpc?)\b")
_BODY_END = re.compile(r"\s*\.end(m|r)\b")
_LABELS = re.compile(r"\s*(?:[\w.$]+:\s*)*")
_NO_CODE = re.compile(r"\s*(?:[#;@].*|//.*|/\*.*\*/)?\s*")
MACRO = "the place is in the body of a macro"
COMMENT = "the place is in a comment"
CONTINUED = "the place is after a backslash that continues the line"


class SourceText:
    """One source.

    :param text: its contents.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self._inside = _inside(self.lines)

    def obstacle(self, line: int) -> str:
        """Return why nothing can be inserted before a line; empty: it can.

        :param line: from 1 to the number of lines plus 1.
        """
        if not 0 < line <= len(self.lines) + 1:
            return f"the place is not in the file, which has {len(self.lines)} lines"
        return self._inside[line - 1]

    def indent(self, line: int) -> str:
        """Return the white space before the instruction of a line."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        found = _LABELS.match(text)
        before = found[0] if found is not None else ""
        white = before[: len(before) - len(before.lstrip())]
        return white or "\t"

    def is_empty(self, first: int, end: int) -> bool:
        """Return whether lines have no code, label or directive.

        :param end: the number of the line after them.
        """
        return all(_NO_CODE.fullmatch(line) for line in self.lines[first - 1 : end - 1])

    @property
    def line_end(self) -> str:
        """How lines end."""
        return "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"


def _inside(lines: list[str]) -> list[str]:
    """Return for each line, and for the place after the last one, what it begins inside; empty: nothing."""
    found = []
    bodies, in_comment, continued = 0, False, False
    for line in lines:
        found.append(MACRO if bodies else COMMENT if in_comment else CONTINUED if continued else "")
        in_comment, code = _without_comments(line, in_comment)
        continued = line.rstrip("\r\n").endswith("\\")
        if _BODY.match(code):
            bodies += 1
        elif _BODY_END.match(code):
            bodies = max(bodies - 1, 0)
    return [*found, ""]


def _without_comments(line: str, in_comment: bool) -> tuple[bool, str]:
    """Return whether a line ends inside a comment, and the line without comments."""
    code, at = "", 0
    while at < len(line):
        mark = "*/" if in_comment else "/*"
        following = line.find(mark, at)
        if not in_comment:
            code += line[at : following if following >= 0 else len(line)]
        if following < 0:
            break
        at, in_comment = following + 2, not in_comment
    return in_comment, code
