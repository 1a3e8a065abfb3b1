"""`--remarks`, `--statistics`, `--report`: what the passes' rules did, where, and why not elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.driver.diagnostics.diagnostic import Diagnostic, UserError, did_you_mean
from irkit.driver.diagnostics.locations import file_place
from irkit.remarks import KINDS, Kind, Record, Remark, recording


def parse_kinds(text: str) -> frozenset[Kind]:
    """`missed,applied` → both kinds. Raises UserError for anything else."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KINDS:
            raise UserError(
                f"--remarks: expected {' or '.join(KINDS)}, got '{name}'{did_you_mean(name, KINDS)}",
                "irkit-opt",
            )
    return frozenset(kind for kind in KINDS if kind in names)


def parse_filter(text: str) -> re.Pattern[str]:
    """A regular expression for `pass/pattern`. Raises UserError for a malformed one."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UserError(f"--remarks-filter: {error}", "irkit-opt") from None


def diagnostic_of(remark: Remark) -> Diagnostic:
    """A remark as it is shown."""
    text = f": {remark.text}" if remark.text else ""
    message = f"[{remark.kind}] {remark.pass_name}/{remark.rule}: '{remark.op}'{text}"
    return Diagnostic(message, file_place(remark.location, len(remark.op)), "remark")


class RemarkReporter:
    """The instrument that shows remarks after each pass, as they were first made."""

    def __init__(
        self, kinds: frozenset[Kind], wanted: re.Pattern[str], show: Callable[[Diagnostic], None]
    ) -> None:
        self.record = Record(kinds)
        self._wanted = wanted
        self._show = show
        self._shown = 0

    @contextmanager
    def recording(self) -> Generator[None]:
        """Collect what passes report inside."""
        with recording(self.record):
            yield

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """What is reported from here on is this pass's."""
        self.record.pass_name = module_pass.name

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Shows the pass's remarks."""
        remarks = list(self.record.remarks)
        new, self._shown = remarks[self._shown :], len(remarks)
        for remark in filter(self.wants, new):
            self._show(diagnostic_of(remark))

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Shows what the pass had to say before it failed."""
        self.after(module, module_pass, seconds)

    def wants(self, remark: Remark) -> bool:
        """Whether the filter lets a remark through."""
        return self._wanted.search(f"{remark.pass_name}/{remark.rule}") is not None

    def table(self) -> str:
        """Counts per pass and pattern, as text."""
        lines = ["===- patterns -===", "   matched   applied    missed  pass/pattern"]
        for (name, rule), counts in self.record.counts.items():
            numbers = f"{counts.matched:10} {counts.applied:9} {counts.missed:9}"
            lines.append(f"{numbers}  {name}/{rule}")
        return "\n".join(lines) + "\n"

    def patterns(self) -> list[dict[str, Any]]:
        """Counts per pass and pattern, as data."""
        return [
            {
                "pass": name,
                "pattern": rule,
                "matched": counts.matched,
                "applied": counts.applied,
                "missed": counts.missed,
            }
            for (name, rule), counts in self.record.counts.items()
        ]

    def remarks(self) -> list[dict[str, Any]]:
        """The remarks, as data."""
        return [
            {**_as_data(remark), "times": times}
            for remark, times in self.record.remarks.items()
            if self.wants(remark)
        ]


def _as_data(remark: Remark) -> dict[str, Any]:
    place = file_place(remark.location, len(remark.op))
    return {
        "kind": remark.kind,
        "pass": remark.pass_name,
        "pattern": remark.rule,
        "op": remark.op,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "reason": remark.text,
    }


def report(seconds: Mapping[str, float], reporters: list[RemarkReporter]) -> str:
    """The file that `--report` writes: JSON with times, counts and remarks of all parts of the input."""
    return (
        json.dumps(
            {
                "seconds": dict(seconds),
                "patterns": [row for reporter in reporters for row in reporter.patterns()],
                "remarks": [row for reporter in reporters for row in reporter.remarks()],
            },
            indent=1,
        )
        + "\n"
    )
