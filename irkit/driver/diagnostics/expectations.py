"""`expected-error@+1 {{...}}` comments, as mlir-opt's `--verify-diagnostics` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irkit.driver.diagnostics.diagnostic import Diagnostic, Place

EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)(?P<regex>-re)?"
    r"\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}"
)


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a comment announces. `line` is None for one without a place."""

    severity: str
    line: int | None
    text: str
    is_regex: bool
    comment: Place

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether `diagnostic` is the one expected."""
        place = diagnostic.place
        line = place.line if isinstance(place, Place) else None
        if self.severity != diagnostic.severity or self.line != line:
            return False
        if not self.is_regex:
            return self.text in diagnostic.message
        # As in MLIR: the text is literal but for {{...}} parts; a closing brace pair ended it early.
        return re.search(self.text, diagnostic.message) is not None


def _target_line(where: str | None, line: int, code_lines: Sequence[bool]) -> int | None:
    match where:
        case None:
            return line
        case "unknown":
            return None
        case "above":
            return line - 1
        case "below":
            following = range(line + 1, len(code_lines) + 1)
            # Several `@below` comments in a row are about the same line: the first that is no comment.
            return next((n for n in following if code_lines[n - 1]), line + 1)
        case _:
            return line + int(where)


class Expectations:
    """All expectations of a file."""

    def __init__(self, expected: list[Expected]) -> None:
        self.expected = expected

    @staticmethod
    def parse(text: str, name: str) -> Expectations:
        """Read the comments of `text`, the content of file `name`."""
        lines = text.split("\n")
        code = [not line.lstrip().startswith("//") for line in lines]
        found: list[Expected] = []
        for number, line in enumerate(lines, start=1):
            for match in EXPECTATION.finditer(line):
                target = _target_line(match["where"], number, code)
                place = Place(name, number, match.start() + 1, match.end() - match.start())
                found.append(
                    Expected(match["severity"], target, match["text"], bool(match["regex"]), place)
                )
        return Expectations(found)

    def mismatches(self, found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
        """What was reported but not expected, and what was expected but not reported.

        Notes need not be expected, but an expected note must appear.
        """
        left = list(self.expected)
        for diagnostic in _flatten(found):
            match = next((e for e in left if e.matches(diagnostic)), None)
            if match is not None:
                left.remove(match)
            elif diagnostic.severity != "note":
                message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
                yield Diagnostic(message, diagnostic.place)
        for missing in left:
            text = f'expected {missing.severity} "{missing.text}" was not produced'
            yield Diagnostic(text, missing.comment)


def _flatten(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)
