"""The values of a plugin's settings; a sleeping plugin needs them, and this module imports nothing."""

from __future__ import annotations

AUTO, ALWAYS, FALLBACK, OFF = MODES = ("auto", "always", "fallback", "off")
ON = "on"
SWITCH = (ON, OFF)
"""The values of a setting that is either true or false."""
TABLES, CODE = ON, "code"
GENERATED = (OFF, TABLES, CODE)
"""What is generated for code without SFrame: nothing; the table of a module, from its DWARF CFI; rules from the machine
code, where there is no CFI either."""
