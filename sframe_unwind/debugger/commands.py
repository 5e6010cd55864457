"""The commands of both plugins: their names and help, and what arguments they take.

A sleeping plugin has them.  So this module imports only names of values; :mod:`sframe_unwind.debugger.arguments` reads
arguments.
"""

from __future__ import annotations

from sframe_unwind.debugger.modes import GENERATED, MODES, SWITCH

ALL = "-all"
JSON = "--json"
BLOCKED = "-blocked"
SOURCE = "/s"
REGS, UCONTEXT, JMPBUF, TASK = CONTEXTS = ("-regs", "-ucontext", "-jmpbuf", "-task")
"""The options that name a context that does not run.  Their argument is the rest of the line."""
_CONTEXT_USAGE = f"[{REGS} pc=EXPR,sp=EXPR,fp=EXPR[,lr=EXPR] | {UCONTEXT} EXPR | {JMPBUF} EXPR | {TASK} PID]"
_CONTEXT_HELP = (
    "With -regs, -ucontext or -jmpbuf: a context that does not run, such as a fiber, with these registers or saved in\n"
    "this ucontext_t or jmp_buf (an expression for it, or for its address).  With -task: the task of a Linux kernel\n"
    "with this pid, which must not be running.  The option comes last.  {debugger} evaluates the expressions in the\n"
    "selected frame; they cannot call functions of the program."
)

PREFIX_HELP = "Unwind stack frames from SFrame data, and show the data."


class Command:
    """One command below ``sframe``.

    :param usage: the arguments in the usage line.
    :param summary: the first line of the help, without a full stop; ``{debugger}`` stands for the debugger's name.
    :param details: the other lines.
    :param takes_limit: whether the first word after the options may be a number of frames.
    :param positional: maximum number of words after the options.
    :param takes_context: whether it takes :data:`CONTEXTS`.
    :param takes_text: the rest of the line, including spaces, is one argument: an expression, or the name of a file.
    :param has_colours: its lines can have escape sequences for colours; it makes all other text printable itself.
    """

    def __init__(
        self,
        name: str,
        usage: str,
        summary: str,
        details: str = "",
        options: tuple[str, ...] = (),
        takes_limit: bool = False,
        positional: int = 0,
        takes_context: bool = False,
        takes_text: bool = False,
        has_colours: bool = False,
    ) -> None:
        self.name = name
        self.usage = usage
        self.summary = summary
        self.details = details
        self.options = options
        self.takes_limit = takes_limit
        self.positional = positional
        self.takes_context = takes_context
        self.takes_text = takes_text
        self.has_colours = has_colours

    def help(self, debugger: str) -> str:
        """Return the text of ``help sframe NAME``.

        :param debugger: ``"GDB"`` or ``"LLDB"``.
        """
        parts = [f"{self.summary}.", *([f"\n{self.details}"] if self.details else []), self.usage_line()]
        return "\n".join(parts).replace("{debugger}", debugger)

    def usage_line(self) -> str:
        """Return the line that shows the arguments of the command."""
        return f"Usage: sframe {self.name} {self.usage}".rstrip()

    @property
    def all_options(self) -> tuple[str, ...]:
        """The options, including those that name a context."""
        return self.options + (CONTEXTS if self.takes_context else ())


class Setting(Command):
    """A setting: a field of :class:`~sframe_unwind.debugger.settings.Settings` with the same name.

    LLDB has a command for it, and GDB a parameter, of which ``set sframe`` and ``show sframe`` are the commands.

    :param values: its values as words; :data:`SWITCH` is for a truth value.  Of others, the first is the default.
    :param summary: begins with "Show or set".
    :param shown: the line that GDB's ``show`` prints, with a place for the value.
    """

    def __init__(self, name: str, values: tuple[str, ...], summary: str, details: str, shown: str) -> None:
        super().__init__(name, f"[{' | '.join(values)}]", summary, details, positional=1)
        self.values = values
        self.shown = shown

    @property
    def is_switch(self) -> bool:
        """Whether it has a truth value."""
        return self.values == SWITCH


MODE = Setting(
    "mode",
    MODES,
    "Show or set which frames are unwound from SFrame",
    "auto (the default): frames that DWARF CFI does not describe, and those for which it is wrong by the machine code\n"
    "always: every frame that SFrame covers\n"
    "fallback: frames for which the module has no DWARF CFI\n"
    "off: none, {debugger}'s own unwinder unwinds every frame",
    shown="The mode of the SFrame unwinder is {!r}.",
)
STRICT = Setting(
    "strict",
    SWITCH,
    "Show or set whether SFrame alone unwinds every frame that it covers, in the modes auto and always",
    "off (the default): where DWARF CFI gives the same caller as SFrame, {debugger}'s own unwinder unwinds the frame,\n"
    "because it knows more registers; on: SFrame alone unwinds every frame that it covers.",
    shown="Strict SFrame unwinding is {}.",
)
GENERATE = Setting(
    "generate",
    GENERATED,
    "Show or set what is generated for code without SFrame",
    "off (the default): nothing\n"
    "on: a module without SFrame gets the section that 'sframe-unwind convert' would make from its DWARF CFI, marked\n"
    "as generated.  It is kept in the user's cache folder, by build ID.\n"
    "code: code that neither SFrame nor DWARF CFI describes is unwound by rules that its instructions prove, where\n"
    "they do (with the extra 'code' in {debugger}'s Python).",
    shown="What is generated for code without SFrame is {!r}.",
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
    f"[N] [{ALL}] {_CONTEXT_USAGE}",
    "Show the stack that SFrame gives, whatever the mode, and why it ends",
    "Each frame names the unwinder that found its caller: 'sframe', or the debugger's own where SFrame has no data.\n"
    "Inlined functions are left out.  With N, the innermost N frames; with -all, every thread.\n" + _CONTEXT_HELP,
    options=(ALL,),
    takes_limit=True,
    takes_context=True,
)
COMPARE = Command(
    "compare",
    f"[N] [{ALL}] [{JSON}]",
    "Compare the stack that SFrame gives with {debugger}'s own, frame by frame: pc, CFA and frame pointer",
    "The last line is the verdict.  With N, the innermost N frames; with -all, every thread; with --json, as JSON.\n"
    "With the extra 'code' in {debugger}'s Python, frames that the machine code contradicts are marked.",
    options=(ALL, JSON),
    takes_limit=True,
)
EXPLAIN = Command(
    "explain",
    f"[ADDRESS] {_CONTEXT_USAGE}",
    "Explain the SFrame data for an address: function, row, the rule in words, and the values that it gives",
    "ADDRESS is an expression; without it, the selected frame is explained.  With the extra 'code' in {debugger}'s\n"
    "Python, it also tells whether the machine code proves the row.\n" + _CONTEXT_HELP,
    positional=1,
    takes_context=True,
    takes_text=True,
)
DISASSEMBLE = Command(
    "disassemble",
    f"[{SOURCE}] [ADDRESS]",
    "Disassemble a function with the rules of SFrame, DWARF CFI and the code beside each instruction",
    "The function is that of the selected frame, or around ADDRESS, an expression.  A rule is shown where it begins,\n"
    "and holds until the next one: the place of the CFA, of the caller's frame pointer and of the return address, in\n"
    "readelf's notation.  A line with ! has rules that differ, or that the machine code refutes (with the extra\n"
    "'code' in {debugger}'s Python).  Beside the instruction of the frame are the values that the rule gives in it.\n"
    "With /s, also the lines of the source.",
    positional=1,
    takes_text=True,
    has_colours=True,
)
TASKS = Command(
    "tasks",
    f"[PATTERN] [{BLOCKED}]",
    "Show the tasks of a Linux kernel with their stacks by SFrame",
    "Tasks with the same stack are shown together.  Running tasks are not shown: their registers are those of a\n"
    "processor, which is a thread in {debugger}.  PATTERN is a pid, or matches the command's name (*, ? and [...] as\n"
    "in a shell).  With -blocked, only tasks in state D are shown: they wait, and signals do not wake them.",
    options=(BLOCKED,),
    positional=1,
)
CONVERT = Command(
    "convert",
    "[MODULE]",
    "Make DWARF CFI from SFrame for {debugger}, for functions that only SFrame describes",
    "The CFI is made as 'sframe-unwind convert --to debug_frame' makes it.  {debugger} then unwinds these functions\n"
    "by itself: their frames have registers, variables, 'finish' and expressions.  The CFI remains until the file of\n"
    "the module changes.  MODULE is the name of a file, with or without its folder.",
    positional=1,
    takes_text=True,
)

SETTINGS = (MODE, STRICT, GENERATE)
"""These are commands in LLDB only: GDB has ``set sframe`` and ``show sframe``.  Both plugins register each of them."""
IN_BOTH = (STATUS, BACKTRACE, COMPARE, EXPLAIN, DISASSEMBLE, TASKS)
"""The commands of both debuggers."""
IN_LLDB = (*SETTINGS, *IN_BOTH, CONVERT)
"""All commands of LLDB."""
SHORT = {"bt": BACKTRACE}
"""Short names of commands."""
