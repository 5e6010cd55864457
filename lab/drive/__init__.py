"""Drives programs as people do, with and without the plugin, and compares the debuggers' output after each command.

A session is a program, a debugger and a seed.  Its commands are chosen while the debugger runs without the plugin; the
same commands are then given to debuggers with the plugin, in each of its modes.  After every command, the place of the
program, its stack, variables, registers and output, and the debugger's text must be the same.

    python -m lab.drive --sessions 500 --debugger gdb18
    python -m lab.drive --seed 17 --debugger gdb18 --mode always --show

    python -m lab.drive --corners --sessions 500 --debugger lldb23
    python -m lab.drive --corners --sessions 100 --with version=none --with mode=auto

These are sessions at the corners where a build, a client, a place and a mode meet (`dimensions`).  The builds have all
kinds of linkers, PLTs and unwind tables, some with a part cut away (`makings`, `cutting`), some below a recursion of up
to 20,000 frames; the clients are terminals, scripts and editors (`clients`); the places are processes, local or under a
debug server, which can be 20 ms away, and core files (`places`).  Other people's scripts can be in the debugger, too.
"""
