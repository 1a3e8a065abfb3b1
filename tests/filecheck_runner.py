"""Run the RUN lines of a FileCheck test in this process: tools, pipes, redirections, `not`.

A line such as `// RUN: irkit-opt %s -p cse | filecheck %s` is a list of commands joined by `|`,
several such lists may be joined by `&&`. Known commands are in `COMMANDS`; `%s` is the test file,
`%S` its folder, `%t` a file of its own to write to.
"""

from __future__ import annotations

import io
import re
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser, pattern_for_opts
from filecheck_update import difference, update, update_expectations
from passes_for_tests import TEST_PASSES

from irkit.driver.tools.opt import OptTool
from irkit.driver.verification.dominance import dominance_violation

RUN = re.compile(r"//\s*RUN:\s*(.*)$")
CHECK = re.compile(
    r"//\s*(?!RUN:|COM:)[A-Z][A-Z0-9_-]*(-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(\{LITERAL\})?:"
)


class FileCheckError(Exception):
    """A RUN line failed; the text says which, and what it printed. `updated` is the test with check lines
    that would have matched, if that was what failed."""

    def __init__(self, message: str, updated: str | None = None) -> None:
        super().__init__(message)
        self.updated = updated


@dataclass(frozen=True)
class Mismatch:
    """A filecheck that failed: its arguments, and what it was given."""

    argv: list[str]
    output: str

    @property
    def prefixes(self) -> list[str]:
        """The prefixes of the check lines that did not match."""
        return list(parse_argv_options(["filecheck", *self.argv]).check_prefixes)

    def holds(self, checks: str, output: str) -> bool:
        """Whether some check lines match an output."""
        return matches(self.argv, checks, Streams(output)) == 0


@dataclass
class Streams:
    """What one command reads and writes; `mismatch` if it was a filecheck that failed."""

    stdin: str = ""
    stdout: io.StringIO = field(default_factory=io.StringIO)
    stderr: io.StringIO = field(default_factory=io.StringIO)
    mismatch: Mismatch | None = None


Command = Callable[[list[str], Streams], int]


def run_irkit_opt(argv: list[str], streams: Streams) -> int:
    """irkit-opt, with the passes that exist for tests only; what it prints must have dominance."""
    tool = OptTool(io.StringIO(streams.stdin), streams.stdout, streams.stderr, TEST_PASSES)
    status = tool.main(argv)
    if status != 0 or "--disable-verify" in argv or "--no-verify-each" in argv:
        return status
    for module in tool.result:
        if (violation := dominance_violation(module)) is not None:
            raise FileCheckError(f"irkit-opt printed IR without dominance: {violation}")
    return status


def matches(argv: list[str], text: str, streams: Streams) -> int:
    """filecheck of `streams.stdin` against the check lines in `text`; returns its exit code."""
    options = parse_argv_options(["filecheck", *argv])
    options.reject_empty_vars = True
    content = FInput.canonicalize_line_ends(streams.stdin)
    checks = Parser(options, io.StringIO(text), *pattern_for_opts(options))
    # The matcher prints to sys.stderr, and some progress to sys.stdout.
    with redirect_stderr(streams.stderr), redirect_stdout(io.StringIO()):
        return Matcher(options, FInput("<stdin>", content), checks).run()


def run_filecheck(argv: list[str], streams: Streams) -> int:
    """filecheck on what is piped in."""
    path = Path(parse_argv_options(["filecheck", *argv]).match_filename)
    status = matches(argv, path.read_text(encoding="utf-8"), streams)
    if status != 0:
        streams.mismatch = Mismatch(argv, streams.stdin)
    return status


def run_not(argv: list[str], streams: Streams) -> int:
    """`not command`: fails if the command succeeds. As LLVM's, it takes a crash for a failure only
    after `--crash`; here exit code 2 is the crash."""
    crash = argv[:1] == ["--crash"]
    status = run_command(argv[crash:], streams)
    return 0 if status == (2 if crash else 1) else 1


def run_cat(argv: list[str], streams: Streams) -> int:
    """The content of files."""
    for path in argv:
        streams.stdout.write(Path(path).read_text(encoding="utf-8"))
    return 0


def run_test(argv: list[str], _: Streams) -> int:
    """`test -e FILE`, `test ! -e FILE`."""
    *negation, _flag, path = argv
    return int(Path(path).exists() is (negation == ["!"]))


def run_translate(argv: list[str], streams: Streams) -> int:
    """irkit-translate."""
    from irkit.driver.tools.translate import TranslateTool

    return TranslateTool(streams.stdout, streams.stderr).main(argv)


def run_irkit_run(argv: list[str], streams: Streams) -> int:
    """irkit-run."""
    from irkit.driver.tools.run import RunTool

    return RunTool(io.StringIO(streams.stdin), streams.stdout, streams.stderr).main(argv)


def run_irkit_reduce(argv: list[str], streams: Streams) -> int:
    """irkit-reduce, with the passes that exist for tests only."""
    from irkit.driver.tools.reduce import ReduceTool

    stdin = io.StringIO(streams.stdin)
    return ReduceTool(stdin, streams.stdout, streams.stderr, TEST_PASSES).main(argv)


COMMANDS: Mapping[str, Command] = {
    "cat": run_cat,
    "filecheck": run_filecheck,
    "irkit-opt": run_irkit_opt,
    "irkit-reduce": run_irkit_reduce,
    "irkit-run": run_irkit_run,
    "irkit-translate": run_translate,
    "not": run_not,
    "test": run_test,
}


def run_command(words: list[str], streams: Streams) -> int:
    """Run one known command; raises FileCheckError for an unknown one."""
    name, *argv = words
    if name not in COMMANDS:
        raise FileCheckError(f"unknown command '{name}' (known: {', '.join(COMMANDS)})")
    return COMMANDS[name](argv, streams)


def run_lines(text: str) -> list[str]:
    """The RUN lines of a test, with lines that end in a backslash joined."""
    lines: list[str] = []
    continued = False
    for match in filter(None, map(RUN.search, text.split("\n"))):
        part = match[1].rstrip()
        lines = [*lines[:-1], f"{lines[-1]} {part}"] if continued else [*lines, part]
        continued = part.endswith("\\")
        if continued:
            lines[-1] = lines[-1][:-1].rstrip()
    if continued:
        raise FileCheckError("the last RUN line ends in a backslash")
    return lines


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Reproducers of crashes that a test provokes go to its own folder."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Stop what hangs, a regular expression's search included."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class FileCheckTest:
    """One test file; `scratch` is an empty folder for it to write to."""

    path: Path
    scratch: Path

    def run(self) -> None:
        """Run every RUN line. Raises FileCheckError."""
        text = self.path.read_text(encoding="utf-8")
        lines = run_lines(text)
        if not lines:
            raise FileCheckError(f"{self.path}: no RUN line")
        checked = any("filecheck" in line and CHECK.search(text) for line in lines)
        expected = any("--verify-diagnostics" in line and "expected-" in text for line in lines)
        if not (checked or expected):
            raise FileCheckError(f"{self.path}: no RUN line checks anything")
        with temporary_files_in(self.scratch):
            for line in lines:
                self._run_line(line)

    def _run_line(self, line: str) -> None:
        for pipeline in _split(_words(line), "&&"):
            self._run_pipeline(line, _split(pipeline, "|"))

    def _run_pipeline(self, line: str, commands: list[list[str]]) -> None:
        """As with `set -o pipefail`: any command that fails, fails the line."""
        data = ""
        for words in commands:
            streams = Streams(data)
            words, redirections = _redirections([self._substitute(w) for w in words])
            if (source := redirections.pop("<", None)) is not None:
                streams.stdin = Path(source).read_text(encoding="utf-8")
            if "2>&1" in redirections:
                streams.stderr = streams.stdout
            status = run_command(words, streams)
            data = streams.stdout.getvalue()
            if (target := redirections.get(">")) is not None:
                Path(target).write_text(data, encoding="utf-8")
                data = ""
            if status != 0:
                updated = self._updated(words, streams)
                message = _failure(self.path, line, words, status, streams)
                if updated is not None:
                    before = self.path.read_text(encoding="utf-8")
                    command = f"python -m pytest {self.path} --update-checks"
                    message += f"\n--- `{command}` would write"
                    message += f"\n{difference(self.path, before, updated)}"
                raise FileCheckError(message, updated)

    def _updated(self, words: list[str], streams: Streams) -> str | None:
        """The test with expectations that hold; None if they were not what failed."""
        text = self.path.read_text(encoding="utf-8")
        if words[0] == "irkit-opt" and "--verify-diagnostics" in words:
            changed = update_expectations(text, streams.stderr.getvalue())
            return None if changed == text else changed
        mismatch = streams.mismatch
        if mismatch is None or len(mismatch.prefixes) != 1:
            return None
        return update(self.path, text, mismatch.prefixes[0], mismatch.output, mismatch.holds)

    def update(self) -> None:
        """Run, and rewrite check lines that do not match, prefix by prefix. Raises FileCheckError if that is
        not what fails, or does not help."""
        while True:
            try:
                return self.run()
            except FileCheckError as error:
                before = self.path.read_text(encoding="utf-8")
                if error.updated is None or error.updated == before:
                    raise
                self.path.write_text(error.updated, encoding="utf-8")

    def _substitute(self, word: str) -> str:
        values = {"%s": str(self.path), "%S": str(self.path.parent), "%t": str(self.scratch / "t")}
        return re.sub(r"%[sSt]", lambda m: values[m[0]], word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return _joined(list(lexer))


def _joined(words: list[str]) -> list[str]:
    """`2`, `>&`, `1` are one word to a shell."""
    text = "\0".join(words).replace("2\0>&\0001", "2>&1")
    return text.split("\0")


def _split(words: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _redirections(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Take `2>&1`, `> file` and `< file` out of a command."""
    kept: list[str] = []
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "2>&1":
            found[word] = ""
        elif word in (">", "<"):
            found[word] = next(rest)
        else:
            kept.append(word)
    return kept, found


def _failure(path: Path, line: str, words: list[str], status: int, streams: Streams) -> str:
    shown = [f"{path}: `{' '.join(words)}` returned {status}", f"RUN: {line}"]
    for title, text in (
        ("input", streams.stdin),
        ("output", streams.stdout.getvalue()),
        ("errors", "" if streams.stderr is streams.stdout else streams.stderr.getvalue()),
    ):
        if text:
            shown.append(f"--- {title}\n{text.rstrip()}")
    return "\n".join(shown)
