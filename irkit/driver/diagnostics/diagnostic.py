"""Diagnostics: one message, where it is, the source line with a caret, and notes.

Nothing heavy is imported here: `--help` and argument errors must stay fast.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Literal

Severity = Literal["error", "warning", "note", "remark"]


@dataclass(frozen=True)
class Place:
    """A stretch of `length` characters in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message. `place` is a Place, or a file's name alone, or None if it has no source."""

    message: str
    place: Place | str | None = None
    severity: Severity = "error"
    notes: tuple[Diagnostic, ...] = ()


class UserError(Exception):
    """Something the user can put right: shown as a diagnostic, without a traceback; exit code 1."""

    def __init__(
        self,
        message: str,
        place: Place | str | None = None,
        notes: Iterable[Diagnostic] = (),
    ) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, place, notes=tuple(notes))


class BrokenPassError(UserError):
    """A pass left IR that does not verify: irkit's fault, so exit code 2, but no traceback."""

    @classmethod
    def of(cls, error: UserError, blame: str) -> BrokenPassError:
        """What is wrong with the IR, with a note on who left it so."""
        found = error.diagnostic
        return cls(found.message, found.place, [*found.notes, note(blame)])


def note(message: str, place: Place | str | None = None) -> Diagnostic:
    """A note that belongs to another diagnostic."""
    return Diagnostic(message, place, "note")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


class Sources:
    """The text of the files that places refer to, by name."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        """Remember `text` as the content of file `name`."""
        # Not str.splitlines: it also breaks at form feeds, which no line count here does.
        self._lines[name] = text.split("\n")

    def line(self, place: Place) -> str | None:
        """The line of `place`, None if unknown."""
        lines = self._lines.get(place.file, [])
        return lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(lines) else None


def _caret(place: Place, line: str) -> str:
    start = min(place.column - 1, len(line))
    # Tabs are kept so that the caret stands under its character.
    indent = "".join("\t" if c == "\t" else " " for c in line[:start])
    length = max(1, min(place.length, len(line) - start))
    return indent + "^" + "~" * (length - 1)


def render(diagnostic: Diagnostic, sources: Sources) -> str:
    """The text of a diagnostic and its notes, ending in a newline."""
    place = diagnostic.place
    prefix = f"{place}: " if place else ""
    parts = [f"{prefix}{diagnostic.severity}: {diagnostic.message}\n"]
    line = sources.line(place) if isinstance(place, Place) else None
    if line is not None and isinstance(place, Place):
        parts.append(f"  {line}\n  {_caret(place, line)}\n")
    parts.extend(render(child, sources) for child in diagnostic.notes)
    return "".join(parts)


def report(diagnostic: Diagnostic, sources: Sources, stream: IO[str]) -> None:
    """Print a diagnostic."""
    stream.write(render(diagnostic, sources))
