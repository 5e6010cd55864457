"""The commands of both plugins: their names, help and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sframe_unwind.errors import SFrameError

ALL = "-all"
JSON = "--json"
PREFIX_HELP = "Unwind stack frames from SFrame data, and show what it says."


class UsageError(SFrameError):
    """The arguments of a command are not what it takes; the message says what it takes."""


class Arguments(NamedTuple):
    """The arguments of a command."""

    options: frozenset[str]
    limit: int | None
    """N: how many frames, of the innermost ones; ``None``: all."""
    rest: tuple[str, ...]


class Command(NamedTuple):
    """One command below ``sframe``."""

    name: str
    usage: str
    """What stands behind the name in the usage."""
    summary: str
    """The first line of the help, without a full stop; ``{debugger}`` stands for the debugger's name."""
    details: str = ""
    """The other lines."""
    options: tuple[str, ...] = ()
    takes_limit: bool = False
    positional: int = 0
    """How many words may stand behind the options at the most."""

    def help(self, debugger: str) -> str:
        """Return the text of ``help sframe NAME``.

        :param debugger: ``"GDB"`` or ``"LLDB"``.
        """
        parts = [f"{self.summary}.", *([f"\n{self.details}"] if self.details else []), self.usage_line()]
        return "\n".join(parts).replace("{debugger}", debugger)

    def usage_line(self) -> str:
        """Return the line that says what the command takes."""
        return f"Usage: sframe {self.name} {self.usage}".rstrip()

    def parse(self, words: Sequence[str]) -> Arguments:
        """Return the arguments.

        :param words: as the debugger splits them.
        :raises UsageError: an option that is not known, a word too many, or a number of frames that is none.
        """
        options = frozenset(word for word in words if word in self.options)
        rest = [word for word in words if word not in options]
        limit = None
        if self.takes_limit and rest and not rest[0].startswith("-"):
            limit = self._limit(rest.pop(0))
        if len(rest) > self.positional or any(word.startswith("-") for word in rest):
            raise UsageError(self.usage_line())
        return Arguments(options, limit, tuple(rest))

    def _limit(self, word: str) -> int:
        if not (word.isascii() and word.isdigit() and int(word)):
            raise UsageError(f"the number of frames is {word!r}, expected 1 or more; {self.usage_line()}")
        return int(word)


MODE = Command(
    "mode",
    "[always | fallback | off]",
    "Show or set which frames are unwound from SFrame",
    "always (the default): every frame that SFrame covers\n"
    "fallback: frames for which the module has no DWARF CFI\n"
    "off: none, {debugger}'s own unwinder unwinds every frame",
    positional=1,
)
STRICT = Command(
    "strict",
    "[on | off]",
    "Show or set whether mode 'always' shows SFrame's own frames throughout",
    "off (the default): where DWARF CFI gives the same caller as SFrame, {debugger}'s own unwinder carries the frame\n"
    "out, which knows more registers; on: every frame that SFrame covers shows what SFrame alone gives.",
    positional=1,
)
GENERATE = Command(
    "generate",
    "[on | off]",
    "Show or set whether modules without SFrame get what can be made of their DWARF CFI",
    "off (the default); on: such a module gets a section as 'sframe-unwind convert' makes it, which is marked as\n"
    "generated.  It is kept in the user's cache folder, by build ID.",
    positional=1,
)
STATUS = Command(
    "status",
    "",
    "Show which modules have SFrame data, and of which kind",
    "For each module: where its section is, version, ABI, number of functions, flags, and how much of its code the\n"
    "functions cover.",
)
BACKTRACE = Command(
    "backtrace",
    f"[N] [{ALL}]",
    "Show the stack that SFrame gives, whatever the mode, and why it ends",
    "Each frame names the unwinder that found its caller: 'sframe', or the debugger's own where SFrame has no data.\n"
    "Inlined functions are left out.  With N, the innermost N frames; with -all, every thread.",
    options=(ALL,),
    takes_limit=True,
)
COMPARE = Command(
    "compare",
    f"[N] [{ALL}] [{JSON}]",
    "Compare the stack that SFrame gives with {debugger}'s own, frame by frame: pc, CFA and frame pointer",
    "The last line is the verdict.  With N, the innermost N frames; with -all, every thread; with --json, as JSON.\n"
    "With the extra 'code' in {debugger}'s Python, frames that both have wrong by the machine code are marked.",
    options=(ALL, JSON),
    takes_limit=True,
)
EXPLAIN = Command(
    "explain",
    "[ADDRESS]",
    "Explain what SFrame says of an address: function, row, the rule in words, and the values that it gives",
    "ADDRESS is an expression; without it, the selected frame is explained.  With the extra 'code' in {debugger}'s\n"
    "Python, it also says whether the machine code proves the row.",
    positional=1,
)
