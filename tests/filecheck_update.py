"""New expectations for a FileCheck test whose output has changed: `pytest --update-checks`.

The check lines of one prefix are in sections, each from a LABEL line to the next. A section that still holds
is left as it is, whatever its style; one that does not becomes what was printed, line by line. What the
lines are about (code, comments, other prefixes) stays.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Holds = Callable[[str, str], bool]
"""Whether check lines, given as a text, match an output."""

_LABELLED = re.compile(r"^\s*\"?(func\.func|task\.program|task\.roperator)\b.*@")


@dataclass
class Line:
    """A line of the test. `old` is its number in the file as it was; None for a new one."""

    text: str
    old: int | None = None


@dataclass
class Section:
    """Check lines (their indices) that belong together, and the output from their label on."""

    label: int | None
    checks: list[int]
    output: list[str]


def directive(prefix: str) -> re.Pattern[str]:
    """Matches a check line of `prefix`; groups: indentation and `//`, kind, text."""
    return re.compile(rf"^(\s*//\s*){re.escape(prefix)}(-[A-Z]+(?:-\d+)?)?(?:\{{LITERAL\}})?:(.*)$")


def sections_of(lines: Sequence[str], prefix: str) -> list[Section]:
    """The sections of `prefix`, in order, without their output."""
    found: list[Section] = []
    pattern = directive(prefix)
    for index, line in enumerate(lines):
        if (match := pattern.match(line)) is None:
            continue
        if match[2] == "-LABEL":
            found.append(Section(index, [], []))
        elif found:
            found[-1].checks.append(index)
        else:
            found.append(Section(None, [index], []))
    return found


def _label_matches(check: str, line: str) -> bool:
    """Whether a LABEL line's text, its patterns taken as anything, is in a line of the output."""
    parts = re.split(r"\{\{.*?\}\}|\[\[.*?\]\]", check.strip())
    return (
        re.search(".*?".join(re.escape(" ".join(p.split())) for p in parts), " ".join(line.split()))
        is not None
    )


def share_output(
    lines: Sequence[str], sections: list[Section], prefix: str, output: list[str]
) -> bool:
    """Give each section the output from its label to the next one's; False if a label is gone."""
    pattern, start, starts = directive(prefix), 0, []
    for section in sections:
        if section.label is None:
            starts.append(0)
            continue
        match = pattern.match(lines[section.label])
        assert match is not None
        at = next(
            (i for i in range(start, len(output)) if _label_matches(match[3], output[i])), None
        )
        if at is None:
            return False
        starts.append(at)
        start = at + 1
    for section, first, last in zip(sections, starts, [*starts[1:], len(output)], strict=True):
        section.output = output[first:last]
    return True


def escaped(text: str) -> str:
    """An output line as literal text of a check line."""
    text = text.replace("{{", "\0").replace("[[", r"{{\[\[}}")
    return text.replace("\0", r"{{\{\{}}")


def check_lines(output: Sequence[str], prefix: str, head: str, labelled: bool) -> list[Line]:
    """Check lines for exactly this output. `labelled`: its first line has a LABEL line already."""
    made: list[Line] = []
    rest = list(output)
    while rest and not rest[-1].strip():
        rest.pop()
    for number, line in enumerate(rest):
        if number == 0 and labelled:
            continue
        if not line.strip():
            made.append(Line(f"{head}{prefix}-EMPTY:"))
            continue
        kind = "-NEXT" if number else ""
        if _LABELLED.match(line) and number == 0:
            kind = "-LABEL"
        made.append(Line(f"{head}{prefix}{kind}: {' ' * (6 - len(kind))}{escaped(line)}".rstrip()))
    return made


def _whole(output: Sequence[str], prefix: str, head: str) -> list[Line]:
    """Check lines for a whole output, a section for each function or program."""
    cuts = [i for i, line in enumerate(output) if _LABELLED.match(line)]
    bounds = [0, *(c for c in cuts if c), len(output)]
    parts = [output[a:b] for a, b in pairwise(bounds)]
    return [line for part in parts for line in check_lines(part, prefix, head, False)]


def update(path: Path, text: str, prefix: str, output: str, holds: Holds) -> str:
    """`text`, the content of test `path`, with check lines of `prefix` that `output` satisfies."""
    lines = text.split("\n")
    printed = output.rstrip("\n").split("\n")
    sections = sections_of(lines, prefix)
    new: dict[int, list[Line]] = {}
    dropped: set[int] = set()
    head = "// "
    if sections:
        first = sections[0].checks[0] if sections[0].label is None else sections[0].label
        match = directive(prefix).match(lines[first])
        assert match is not None
        head = match[1]
        if not share_output(lines, sections, prefix, printed):
            dropped = {
                i for s in sections for i in [*s.checks, *([] if s.label is None else [s.label])]
            }
            new[first] = _whole(printed, prefix, head)
            sections = []
    else:
        new[_after_run_lines(lines)] = _whole(printed, prefix, head)
    for section in sections:
        own = [*([] if section.label is None else [section.label]), *section.checks]
        # At their own lines: some count on it.
        checks = "\n".join(line if i in own else "" for i, line in enumerate(lines))
        if holds(checks, "\n".join(section.output) + "\n"):
            continue
        dropped |= set(section.checks)
        place = section.checks[0] if section.label is None else section.label + 1
        new[place] = check_lines(section.output, prefix, head, section.label is not None)
    return _laid_out(path, lines, new, dropped)


def _after_run_lines(lines: Sequence[str]) -> int:
    runs = [i for i, line in enumerate(lines) if "RUN:" in line]
    return runs[-1] + 1 if runs else 0


def _laid_out(
    path: Path, lines: Sequence[str], new: dict[int, list[Line]], dropped: set[int]
) -> str:
    """The file with new lines before the lines of their index; places in this file become relative."""
    made: list[Line] = []
    for index, line in enumerate([*lines, None]):
        made.extend(new.get(index, []))
        if line is not None and index not in dropped:
            made.append(Line(line, index + 1))
    where = {line.old: number for number, line in enumerate(made, start=1) if line.old is not None}
    own = re.compile(rf"[^\s\"(]*{re.escape(path.name)}(?:(\"?):(\d+))?")

    def relative(number: int, match: re.Match[str]) -> str:
        if match[2] is None:
            return "{{.*}}" + path.name
        if match[2] == "1":  # where a module begins, whatever stands there
            return f"{{{{.*}}}}{path.name}{match[1]}:1"
        offset = where.get(int(match[2]), int(match[2])) - number
        sign = "+" if offset >= 0 else "-"
        return f"{{{{.*}}}}{path.name}{match[1]}:[[# @LINE {sign} {abs(offset)}]]"

    for number, line in enumerate(made, start=1):
        if line.old is None:
            line.text = own.sub(lambda m, n=number: relative(n, m), line.text)
    return "\n".join(line.text for line in made)


def difference(path: Path, before: str, after: str) -> str:
    """A unified diff of a test and what it would become."""
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        f"{path} (as it is)",
        f"{path} (updated)",
        lineterm="",
    )
    return "\n".join(lines)


# Expected diagnostics

_UNEXPECTED = re.compile(
    r"^(?P<file>.*?):(?P<line>\d+):\d+: error: unexpected (?P<kind>\w+): (?P<text>.*)$", re.M
)
_MISSING = re.compile(
    r'^(?P<file>.*?):(?P<line>\d+):\d+: error: expected (?P<kind>\w+) "(?P<text>.*)" was not produced$',
    re.M,
)


def update_expectations(text: str, errors: str) -> str:
    """`text` with the `expected-...` comments that `errors`, of `--verify-diagnostics`, asks for.

    A message that changed takes the place of the nearest one of its kind that did not come; one that is new
    gets a comment of its own, and one that is gone loses its comment.
    """
    lines = text.split("\n")
    missing = [(int(m["line"]), m["kind"], m["text"]) for m in _MISSING.finditer(errors)]
    before: dict[int, list[str]] = {}

    def part(line: int) -> int:
        return sum(text.startswith("// -----") for text in lines[:line])

    for found in _UNEXPECTED.finditer(errors):
        line, kind = int(found["line"]), found["kind"]
        same = [m for m in missing if m[1] == kind and part(m[0]) == part(line)]
        if not same:
            indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
            comment = f"{indent}// expected-{kind}@below {{{{{found['text']}}}}}"
            before.setdefault(line - 1, []).append(comment)
            continue
        nearest = min(same, key=lambda m: abs(m[0] - line))
        missing.remove(nearest)
        old = f"{{{{{nearest[2]}}}}}"
        lines[nearest[0] - 1] = lines[nearest[0] - 1].replace(old, f"{{{{{found['text']}}}}}", 1)
    gone = {
        line - 1 for line, _, _ in missing if lines[line - 1].lstrip().startswith("// expected-")
    }
    kept = [[*before.get(i, []), *([] if i in gone else [line])] for i, line in enumerate(lines)]
    return "\n".join(line for part in kept for line in part)
