"""Patterns explain themselves: no way out of one is silent, and records belong to a run."""

from __future__ import annotations

import ast
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects import test as dialect
from xdsl.dialects.builtin import ModuleOp

import irkit
from irkit.driver.files.context import make_context
from irkit.driver.files.parsing import parse_module
from irkit.passes import PASSES
from irkit.remarks import Record, Remark, applied, current, missed, recording
from irkit.rewriting import FixpointError, Step, cycle_of

ROOT = Path(irkit.__file__).parent


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether the last statement may be a guard that did not hold: nothing was said or done."""
    last = body[-1]
    if isinstance(last, ast.If):
        return not last.orelse or falls_through(last.body) or falls_through(last.orelse)
    return isinstance(last, ast.For | ast.While | ast.Pass)


def parsed(text: str) -> ast.AST:
    """With no finalizer run meanwhile, which Python 3.11 takes for a recursion that is too deep."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


def silent_ways_out(text: str) -> Iterator[str]:
    """Patterns of a file with a bare `return`, or that may end having done nothing."""
    for node in ast.walk(parsed(text)):
        if not isinstance(node, ast.ClassDef):
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "match_and_rewrite":
                bare = [n for n in ast.walk(method) if isinstance(n, ast.Return) and not n.value]
                if bare or falls_through(method.body):
                    yield node.name


def files() -> list[Path]:
    # The applier itself runs patterns, and is none.
    return [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "rewriting.py"]


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_pattern_is_silent(path: Path):
    text = path.read_text(encoding="utf-8")
    assert list(silent_ways_out(text)) == []
    # canonicalize.py wraps patterns of xDSL's.
    if path.name not in ("base.py", "canonicalize.py"):
        assert "(RewritePattern)" not in text, "irkit's patterns are Rules"


@pytest.mark.parametrize(
    ("body", "silent"),
    [
        ("if x:\n      return\n    do()", True),
        ("if x:\n      do()", True),
        ("for y in x:\n      return do()", True),
        ("if x:\n      do()\n    else:\n      say()", False),
        ("if x:\n      return say()\n    do()", False),
    ],
)
def test_the_check_finds_silent_patterns(body: str, silent: bool):
    text = f"class P:\n  def match_and_rewrite(self, op, rewriter):\n    {body}\n"
    assert bool(list(silent_ways_out(text))) is silent


def test_nothing_is_kept_or_formatted_when_off():
    class Loud:
        def __format__(self, spec: str) -> str:
            raise AssertionError("a reason was made that nobody reads")

    op = dialect.TestOp()
    assert current() is None
    missed(op, "Rule", "reason {}", Loud())
    applied(op, "Rule", "text {}", Loud())


def test_equal_remarks_are_one():
    op, record = dialect.TestOp(), Record()
    with recording(record):
        for _ in range(3):
            missed(op, "Rule", "not {}", 1)
        applied(op, "Rule")
    assert list(record.remarks.values()) == [3, 1]
    assert next(iter(record.remarks)).text == "not 1"
    counts = record.counts["", "Rule"]
    assert (counts.matched, counts.applied, counts.missed) == (4, 1, 3)
    assert current() is None


def test_records_of_threads_are_their_own():
    records = [Record(), Record()]
    barrier = threading.Barrier(2)

    def work(number: int) -> None:
        with recording(records[number]):
            barrier.wait()
            missed(dialect.TestOp(), f"Rule{number}", "")
            barrier.wait()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [[rule for _, rule in r.counts] for r in records] == [["Rule0"], ["Rule1"]]


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ("ABABAB", "AB"),
        ("BABABA", "BA"),
        ("AAAA", "A"),
        ("ABCABCABC", "ABC"),
        ("ABACABBA", "AB"),
    ],
)
def test_the_cycle_is_named(rules: str, named: str):
    location = dialect.TestOp().location
    steps = [Step(rule, "op", location) for rule in rules]
    assert "".join(step.rule for step in cycle_of(steps)) == named
    assert all(f"'{rule}'" in str(FixpointError(cycle_of(steps), 9, 1)) for rule in named)


PROGRAM = """\
func.func @main(%x: tensor<2x4xf32>, %c: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = arith.constant dense<1.5> : tensor<4x4xf32>
  %b = arith.constant dense<0.5> : tensor<4xf32>
  %0 = graph.gemm %x, %w, %b {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %1 = graph.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = graph.exp %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = graph.add %2, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %3, %2 : tensor<2x4xf32>, tensor<2x4xf32>
}
"""


def remarks_of(names: list[str]) -> list[Remark]:
    ctx = make_context("-")
    module: ModuleOp = parse_module(ctx, PROGRAM, "p.mlir")
    record = Record()
    with recording(record):
        for name in names:
            record.pass_name = name
            PASSES[name]()().apply(ctx, module)
    return list(record.remarks)


def test_fusion_and_forming_say_why():
    found = remarks_of(["convert-graph-to-tensor", "fuse-elementwise", "form-roperators"])
    said = {(r.kind, r.rule): r.text for r in found}
    assert ("applied", "FuseProducer") in said
    texts = {r.text for r in found if r.kind == "missed"}
    assert "operand 0: something else reads it too" in texts
    assert any(r.rule == "FuseEpilogue" and r.kind == "applied" for r in found)
    assert any(r.rule == "FuseEpilogue" and r.text == "its results have no one user" for r in found)
