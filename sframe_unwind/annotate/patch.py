"""Inserts directives into the sources from which a file was assembled, as a patch."""

from __future__ import annotations

import difflib
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from sframe_unwind.annotate.directives import END, START, Placed
from sframe_unwind.annotate.functions import Annotated
from sframe_unwind.annotate.source_lines import NO_LINE, Code, InstructionLines, Line, Run, code_reader
from sframe_unwind.annotate.source_text import SourceText
from sframe_unwind.elf import ElfBinary
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.source.debug_info import DebugInfo

NO_LINES = "no line information (assemble with -g)"
_WITHIN = "it is needed between two instructions of this line, as of a macro"
_AFTER, _BEFORE = 0, 1


class Obstacle(NamedTuple):
    """Why the source of a function is not changed."""

    function: Annotated
    line: Line
    """The line at which a directive is needed; :data:`NO_LINE`: it is not known."""
    directives: tuple[str, ...]
    """What is needed there; none: the obstacle concerns the whole function."""
    why: str

    def __str__(self) -> str:
        what = f"{'; '.join(self.directives)} cannot be inserted: " if self.directives else ""
        return f"{f'{self.line}: ' if self.line != NO_LINE else ''}{self.function.name}: {what}{self.why}"


class PatchedFile(NamedTuple):
    """A source with directives."""

    path: Path
    """The source."""
    name: str
    """Its path in the patch."""
    before: list[str]
    """Its lines, with their ends."""
    after: list[str]

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff."""
        for line in difflib.unified_diff(self.before, self.after, f"a/{self.name}", f"b/{self.name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

    @property
    def text(self) -> bytes:
        """The source with the directives."""
        return "".join(self.after).encode("utf-8", "surrogateescape")


class Patch(NamedTuple):
    """The changes of the sources of one file."""

    files: list[PatchedFile]
    patched: list[Annotated]
    """The functions whose directives are in the sources."""
    obstacles: list[Obstacle]


class _Place(NamedTuple):
    """Where directives are inserted."""

    file: str
    line: int
    """Before this line, from 1 to the number of lines plus 1."""
    side: int
    """:data:`_AFTER` the line before, or :data:`_BEFORE` this one: what ends comes before what begins."""
    like: int
    """The line whose indent they get."""
    directives: tuple[str, ...]


class _ObstacleError(Exception):
    """Directives have no place: the arguments are those of an :class:`Obstacle` without its function."""


def patch_of(binary: ElfBinary, path: str, functions: Sequence[Annotated], folder: str | None) -> Patch:
    """Return the changes that give functions their directives.

    A function gets all of its directives or none.

    :param path: the file whose functions they are.
    :param functions: those of the file, also such as need no directives: a line that several share cannot be changed.
    :param folder: where the sources are, if they are not at the paths in the debug information.
    :raises FileError: the file has no line information, or a source cannot be read.
    """
    if not any(function.directives for function in functions):
        return Patch([], [], [])
    info = DebugInfo(path)
    if not info.exists:
        raise FileError(NO_LINES)
    sources = _Sources(folder)
    addresses = sorted({at for function in functions for at in function.instructions})
    code = Code(addresses, code_reader(binary), binary.byteorder)
    lines = InstructionLines(info, code, sources.lines)
    places: list[_Place] = []
    patched, obstacles = [], []
    for function in functions:
        if not function.directives:
            continue
        try:
            places += _Placer(function, lines, sources).places()
            patched.append(function)
        except _ObstacleError as error:
            obstacles.append(Obstacle(function, *error.args))
    return Patch(list(sources.patched(places)), patched, obstacles)


class _Sources:
    """The sources, each read once.

    :param folder: where the sources are, if they are not at the paths in the debug information.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Path, SourceText]] = {}

    def lines(self, file: str) -> list[str]:
        """Return the lines of a source; none: it cannot be read."""
        try:
            return self.text(file).lines
        except FileError:
            return []

    def text(self, file: str) -> SourceText:
        """Return a source.

        :param file: path in the debug information.
        :raises FileError: it is not found, or cannot be read.
        """
        if file not in self._known:
            path = self._find(file)
            try:
                # Bytes that are no text have to be the same in the patch.
                self._known[file] = path, SourceText(path.read_bytes().decode("utf-8", "surrogateescape"))
            except OSError as error:
                raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
        return self._known[file][1]

    def _find(self, file: str) -> Path:
        parts = Path(file).parts
        candidates = [Path(file)]
        if self._folder is not None:
            inside = [
                Path(self._folder, *parts[first:]) for first in range(1 if parts[:1] == ("/",) else 0, len(parts))
            ]
            candidates = [*inside, *candidates]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            where = f", nor below {self._folder}" if self._folder is not None else "; -p tells where the sources are"
            raise FileError(f"{file}: no such file{where}")
        return found

    def patched(self, places: Sequence[_Place]) -> Iterator[PatchedFile]:
        """Yield the sources with directives inserted."""
        for file in dict.fromkeys(place.file for place in places):
            path, text = self._known[file]
            inserted: dict[int, list[str]] = {}
            for place in sorted(places, key=lambda place: place.side):
                if place.file == file:
                    indent = text.indent(place.like)
                    added = (f"{indent}{directive}{text.line_end}" for directive in place.directives)
                    inserted.setdefault(place.line, []).extend(added)
            after: list[str] = []
            for number, line in enumerate([*text.lines, ""], start=1):
                after += inserted.get(number, ())
                after.append(line)
            yield PatchedFile(path, self._name(path), text.lines, after[:-1])

    def _name(self, path: Path) -> str:
        folder = os.path.realpath(self._folder or ".")
        found = os.path.relpath(os.path.realpath(path), folder)
        return found if not found.startswith("..") else os.path.realpath(path).lstrip("/")


class _Placer:
    """Finds the places for the directives of one function."""

    def __init__(self, function: Annotated, lines: InstructionLines, sources: _Sources) -> None:
        self._function = function
        self._lines = lines
        self._sources = sources

    def places(self) -> list[_Place]:
        """Return the places.

        :raises _ObstacleError: some directives have none.
        """
        return [self._place(placed) for placed in self._function.directives]

    def _place(self, placed: Placed) -> _Place:
        why, near = "", NO_LINE
        for found in self._candidates(placed):
            why, near = self._obstacle(found), Line(found.file, found.like)
            if not why:
                return found
        raise _ObstacleError(near, placed.directives, why)

    def _candidates(self, placed: Placed) -> Iterator[_Place]:
        """Yield places that have the right address, the best one first.

        :raises _ObstacleError: there is none.
        """
        instructions = self._function.instructions
        number = bisect_left(instructions, placed.address)
        before = self._run(instructions[number - 1], placed) if number and placed.directives[0] != START else None
        after = self._run(instructions[number], placed) if placed.directives[0] != END else None
        if before is not None and before.last != instructions[number - 1]:
            raise _ObstacleError(before.line, placed.directives, _WITHIN)
        if after is not None and after.first != placed.address:
            raise _ObstacleError(after.line, placed.directives, _WITHIN)
        if before is not None and (after is None or self._is_next(before.line, after.line)):
            yield _Place(before.line.file, before.line.number + 1, _AFTER, before.line.number, placed.directives)
        if after is not None:
            yield _Place(after.line.file, after.line.number, _BEFORE, after.line.number, placed.directives)

    def _run(self, address: int, placed: Placed) -> Run:
        found = self._lines.at(address)
        if found.line == NO_LINE:
            raise _ObstacleError(NO_LINE, placed.directives, "the line of an instruction is not known")
        return found

    def _is_next(self, line: Line, other: Line) -> bool:
        """Return whether nothing but comments lies between two lines."""
        if line.file != other.file or line.number >= other.number:
            return False
        return self._sources.text(line.file).is_empty(line.number + 1, other.number)

    def _obstacle(self, place: _Place) -> str:
        """Return why a line cannot be inserted at a place; empty: it can."""
        if self._lines.times(Line(place.file, place.like)) > 1:
            return "the line is assembled several times"
        return self._sources.text(place.file).obstacle(place.line)
