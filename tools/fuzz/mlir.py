"""Broken `.mlir` text through irkit-opt: whatever it is, one diagnostic and exit code 0 or 1."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

from irkit.driver.reducing.delta import minimal
from irkit.driver.tools.opt import OptTool
from tools.fuzz.finding import Finding, TookTooLong, limit

SECONDS = 20.0
PIPELINES = (
    [],
    ["--to=schedule", "--device=test4"],
    ["--to=graph"],
    ["--to=task"],
    ["-p", "canonicalize,cse,dce"],
    ["-t", "numba{target=cpu}", "--device=cpu2"],
    ["--print-op-generic"],
)
TOKEN = re.compile(r'[%@#!^]?[\w.$-]+|"[^"\n]*"|->|[^\w\s]|\s+')
ODD = (
    "-1", "0", "9223372036854775808", "4294967296", "1e400", "0x7FC00000", "?", "f32", "i1", "f64",
    "i64", "tensor<?x?xf32>", "tensor<0xf32>", "tensor<4x4xf32>", "tensor<*xf32>", "%x", "()", "{}",
    "dense<>", "dense_resource<w>", '"graph.relu"', "loc(unknown)", "\u00e9", "\x00", "array<i64: 1>",
)  # fmt: skip


def seeds(root: Path) -> list[str]:
    """The parts of the repository's own test files."""
    files = sorted((root / "tests" / "filecheck").rglob("*.mlir"))
    parts = [p for f in files for p in f.read_text().split("// -----\n")]
    # Comments are for FileCheck; what is left should be read.
    plain = [re.sub(r"^\s*//.*\n", "", p, flags=re.MULTILINE) for p in parts]
    return [p for p in plain if p.strip() and len(p) < 20_000]


def mutant(rng: random.Random, known: list[str]) -> str:
    """A seed with one to six tokens, lines or pieces changed."""
    text = rng.choice(known)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        text = rng.choice(_CHANGES)(rng, text, known)
    return text


def _tokens(rng: random.Random, text: str, known: list[str]) -> str:
    tokens = TOKEN.findall(text) or [""]
    at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    match rng.randrange(5):
        case 0:
            del tokens[at]
        case 1:
            tokens[at] = tokens[other]
        case 2:
            tokens[at] = rng.choice(ODD)
        case 3:
            tokens.insert(at, tokens[other])
        case _:
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


def _numbers(rng: random.Random, text: str, known: list[str]) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    m = rng.choice(found)
    value = rng.choice(("0", "1", "2", "3", "7", "64", "100000", str(int(m[0]) + 1), "-1"))
    return text[: m.start()] + value + text[m.end() :]


def _lines(rng: random.Random, text: str, known: list[str]) -> str:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines) + 1)
    match rng.randrange(3):
        case 0:
            return "".join(lines[:at] + lines[at + 1 :])
        case 1:
            other = rng.choice(known).splitlines(keepends=True)
            return "".join([*lines[:at], rng.choice(other), *lines[at:]])
        case _:
            return "".join(lines[:at] + lines[at : at + 1] * 2 + lines[at + 1 :])


def _cut(rng: random.Random, text: str, known: list[str]) -> str:
    return text[: rng.randrange(len(text) + 1)]


_CHANGES = (_tokens, _tokens, _tokens, _numbers, _numbers, _lines, _cut)


def judge(text: str, arguments: list[str]) -> str | None:
    """What is wrong with how irkit-opt takes `text`; None if nothing."""
    stdout, stderr = io.StringIO(), io.StringIO()
    tool = OptTool(io.StringIO(text), stdout, stderr)
    try:
        with limit(SECONDS):
            status = tool.main(["-", *arguments])
    except TookTooLong:
        return f"took more than {SECONDS:.0f} s"
    if status not in (0, 1):
        last = [line for line in stderr.getvalue().splitlines() if line.strip()]
        return f"exit code {status}: {next((x for x in last if 'rror' in x), '')}"
    if status == 1 and "error:" not in stderr.getvalue():
        return "exit code 1 without an error"
    return None


def attempt(rng: random.Random, known: list[str]) -> Finding | None:
    """One mutant through one pipeline; a finding is made small."""
    text, arguments = mutant(rng, known), list(rng.choice(PIPELINES))
    what = judge(text, arguments)
    if what is None:
        return None
    kind = what.split(":")[0]

    def still(lines: list[str]) -> bool:
        again = judge("".join(lines), arguments)
        return again is not None and again.split(":")[0] == kind

    lines = text.splitlines(keepends=True)
    kept = minimal(lines, still) if "took" not in what else lines
    shown = f"// RUN: not irkit-opt %s {' '.join(arguments)}\n// {what}\n" + "".join(kept)
    return Finding(what, shown.encode("utf-8", "surrogateescape"), ".mlir")
