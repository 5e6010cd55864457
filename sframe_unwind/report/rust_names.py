"""Demangles the names of Rust: version 0 (RFC 2603, "Rust Symbol Name Mangling v0") here, and the legacy form.

The text is that of GDB: without hashes of crates, and without the types of constants.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from sframe_unwind.report.rust_legacy_names import demangle_legacy

_LENGTH = re.compile(r"0|[1-9][0-9]*")
_V0 = re.compile(r"_R([A-Za-z]\w*)", re.ASCII)
_MOST_NODES = 20_000
"""Limit of the work for one name.  Each back reference can double it."""
_MOST_NESTED = 200
_LONGEST_TEXT = 1 << 16
"""Limit of the length of the text, in characters."""
_DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase
_BASIC = {
    "a": "i8",
    "b": "bool",
    "c": "char",
    "d": "f64",
    "e": "str",
    "f": "f32",
    "h": "u8",
    "i": "isize",
    "j": "usize",
    "l": "i32",
    "m": "u32",
    "n": "i128",
    "o": "u128",
    "p": "_",
    "s": "i16",
    "t": "u16",
    "u": "()",
    "v": "...",
    "x": "i64",
    "y": "u64",
    "z": "!",
}
"""The types with a letter of their own."""
_SIGNED, _UNSIGNED = "aslxni", "htmyoj"
_NAMESPACES = {"C": "closure", "S": "shim"}


def demangle_rust(name: str) -> str | None:
    """Return the demangled name of a Rust function; ``None``: the name is not one of Rust, or is malformed."""
    if name.startswith("_R"):
        found = _V0.match(name)
        try:
            return _Printer(found[1]).text() if found else None
        except (_MalformedError, IndexError):
            return None
    return demangle_legacy(name)


class _MalformedError(Exception):
    """The name does not follow the grammar, or is too complicated."""


class _Printer:
    """Parses a name and prints it at the same time, in the order of the grammar.

    :param text: the name after ``_R``.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._parts: list[str] = []
        self._length = 0
        self._is_silent = False
        self._nodes = 0
        self._nested = 0
        self._lifetimes = 0
        """Number of the lifetimes that the enclosing ``for<...>`` bind."""

    def text(self) -> str:
        """Return the name.

        :raises _MalformedError: it is malformed.
        """
        self._path(is_value=True)
        if self._at < len(self._text):
            with self._silence():  # the crate for which the function was compiled
                self._path(is_value=False)
        if self._at < len(self._text):
            raise _MalformedError
        return "".join(self._parts)

    def _print(self, text: str) -> None:
        if not self._is_silent:
            self._parts.append(text)
            self._length += len(text)
            if self._length > _LONGEST_TEXT:
                raise _MalformedError

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _takes(self, letter: str) -> bool:
        """Move over a letter if it is next; return whether it is."""
        found = self._text.startswith(letter, self._at)
        self._at += found
        return found

    def _number(self) -> int:
        """Read a base-62 number: 0 is ``_``, 1 is ``0_``."""
        value = 0
        if self._takes("_"):
            return 0
        while (digit := self._next()) != "_":
            value = 62 * value + _DIGITS.index(digit)
        return value + 1

    def _optional(self, tag: str) -> int:
        """Read a base-62 number after a tag, and return it plus 1; 0: it is absent."""
        return self._number() + 1 if self._takes(tag) else 0

    def _identifier(self) -> str:
        is_punycode = self._takes("u")
        length = _LENGTH.match(self._text, self._at)
        if length is None:
            raise _MalformedError
        self._at = length.end()
        self._takes("_")
        start, self._at = self._at, self._at + int(length[0])
        if self._at > len(self._text):
            raise _MalformedError
        name = self._text[start : self._at]
        return _from_punycode(name) if is_punycode else name

    @contextmanager
    def _silence(self) -> Iterator[None]:
        before, self._is_silent = self._is_silent, True
        yield
        self._is_silent = before

    @contextmanager
    def _node(self) -> Iterator[None]:
        self._nodes += 1
        self._nested += 1
        if self._nodes > _MOST_NODES or self._nested > _MOST_NESTED:
            raise _MalformedError
        yield
        self._nested -= 1

    def _back_reference(self, then: Callable[[], None]) -> None:
        """Print the part of the name that begins at an earlier position."""
        start = self._at - 1
        target = self._number()
        if target >= start:
            raise _MalformedError
        if not self._is_silent:
            after, self._at = self._at, target
            then()
            self._at = after

    def _path(self, is_value: bool) -> None:
        """Print a path.

        :param is_value: it is the path of a value, not of a type: ``::`` precedes its generic arguments.
        """
        with self._node():
            tag = self._next()
            if tag == "C":
                self._optional("s")
                self._print(self._identifier())
            elif tag == "N":
                self._in_namespace(is_value)
            elif tag in "MXY":
                self._of_type(tag)
            elif tag == "I":
                self._path(is_value)
                self._print("::<" if is_value else "<")
                self._until_end(self._generic_argument)
                self._print(">")
            elif tag == "B":
                self._back_reference(lambda: self._path(is_value))
            else:
                raise _MalformedError

    def _in_namespace(self, is_value: bool) -> None:
        namespace = self._next()
        self._path(is_value)
        number = self._optional("s")
        name = self._identifier()
        if namespace.isupper():
            kind = _NAMESPACES.get(namespace, namespace)
            self._print(f"::{{{kind}{':' if name else ''}{name}#{number}}}")
        elif name:
            self._print(f"::{name}")

    def _of_type(self, tag: str) -> None:
        """Print the type of an implementation, and its trait."""
        if tag != "Y":
            with self._silence():
                self._optional("s")
                self._path(is_value=False)
        self._print("<")
        self._type()
        if tag != "M":
            self._print(" as ")
            self._path(is_value=False)
        self._print(">")

    def _until_end(self, item: Callable[[], None], separator: str = ", ") -> int:
        """Print items up to an ``E``; return their number."""
        count = 0
        while not self._takes("E"):
            if count:
                self._print(separator)
            item()
            count += 1
        return count

    def _generic_argument(self) -> None:
        if self._takes("L"):
            self._lifetime(self._number())
        elif self._takes("K"):
            self._constant()
        else:
            self._type()

    def _lifetime(self, number: int) -> None:
        if not number:
            self._print("'_")
            return
        depth = self._lifetimes - number
        if depth < 0:
            raise _MalformedError
        self._print(_lifetime_name(depth))

    def _type(self) -> None:
        with self._node():
            tag = self._next()
            if tag in _BASIC:
                self._print(_BASIC[tag])
            elif tag in "RQ":
                self._reference(tag)
            elif tag in "PO":
                self._print("*const " if tag == "P" else "*mut ")
                self._type()
            elif tag in "AS":
                self._array(tag)
            elif tag == "T":
                self._print("(")
                count = self._until_end(self._type)
                self._print(",)" if count == 1 else ")")
            elif tag == "F":
                self._with_lifetimes(self._function)
            elif tag == "D":
                self._dynamic()
            elif tag == "B":
                self._back_reference(self._type)
            else:
                self._at -= 1
                self._path(is_value=False)

    def _reference(self, tag: str) -> None:
        self._print("&")
        if self._takes("L") and (number := self._number()):
            self._lifetime(number)
            self._print(" ")
        self._print("mut " if tag == "Q" else "")
        self._type()

    def _array(self, tag: str) -> None:
        self._print("[")
        self._type()
        if tag == "A":
            self._print("; ")
            self._constant()
        self._print("]")

    def _with_lifetimes(self, then: Callable[[], None]) -> None:
        """Print ``for<...>`` if lifetimes are bound, and then what binds them."""
        count = self._optional("G")
        if count > _MOST_NESTED:
            raise _MalformedError
        if count:
            names = (_lifetime_name(self._lifetimes + number) for number in range(count))
            self._print(f"for<{', '.join(names)}> ")
        self._lifetimes += count
        then()
        self._lifetimes -= count

    def _function(self) -> None:
        self._print("unsafe " if self._takes("U") else "")
        if self._takes("K"):
            name = "C" if self._takes("C") else self._identifier().replace("_", "-")
            self._print(f'extern "{name}" ')
        self._print("fn(")
        self._until_end(self._type)
        self._print(")")
        if not self._takes("u"):
            self._print(" -> ")
            self._type()

    def _dynamic(self) -> None:
        self._print("dyn ")
        self._with_lifetimes(self._traits)
        if not self._takes("L"):
            raise _MalformedError
        if number := self._number():
            self._print(" + ")
            self._lifetime(number)

    def _traits(self) -> None:
        self._until_end(self._trait, " + ")

    def _trait(self) -> None:
        """Print a trait with its associated types, which are inside the brackets of its generic arguments."""
        is_open = self._trait_path()
        while self._takes("p"):
            self._print(", " if is_open else "<")
            is_open = True
            self._print(f"{self._identifier()} = ")
            self._type()
        self._print(">" if is_open else "")

    def _trait_path(self) -> bool:
        """Print the path of a trait; return whether its generic arguments are still open."""
        if self._takes("B"):
            opened = []
            self._back_reference(lambda: opened.append(self._trait_path()))
            return any(opened)
        if not self._takes("I"):
            self._path(is_value=False)
            return False
        self._path(is_value=False)
        self._print("<")
        self._until_end(self._generic_argument)
        return True

    def _constant(self) -> None:
        with self._node():
            tag = self._next()
            if tag == "B":
                self._back_reference(self._constant)
                return
            if tag == "p":
                self._print("_")
                return
            sign = "-" if tag in _SIGNED and self._takes("n") else ""
            start = self._at
            while self._next() != "_":
                pass
            digits = self._text[start : self._at - 1].lstrip("0")
            self._print(sign + _value(tag, digits))


def _value(tag: str, digits: str) -> str:
    """Return a constant as text.

    :param tag: its type.
    :param digits: hexadecimal digits; none: 0.
    """
    if any(digit not in "0123456789abcdef" for digit in digits):
        raise _MalformedError
    value = int(digits or "0", 16)
    if tag in _SIGNED + _UNSIGNED:
        return str(value) if len(digits) <= 16 else f"0x{digits}"
    if tag == "b" and value < 2:
        return "true" if value else "false"
    if tag == "c" and value <= 0x10FFFF:
        return repr(chr(value))
    raise _MalformedError


def _lifetime_name(depth: int) -> str:
    return f"'{string.ascii_lowercase[depth]}" if depth < 26 else f"'_{depth}"


def _from_punycode(name: str) -> str:
    basic, _, rest = name.rpartition("_")
    try:
        return f"{basic}{'-' if basic else ''}{rest}".encode("ascii").decode("punycode")
    except UnicodeError as error:
        raise _MalformedError from error
