"""What an rOperator says of operands that are updated in place, held to what its rKernel prints."""

from __future__ import annotations

import dataclasses

import cpu_emulator
import numpy as np
import pytest

import irkit
from irkit.dialects.task import ROperatorOp
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.legality import root_of, why_illegal
from irkit.schedule.devices import device

CPU = device("cpu2")
MAPS = "#i = affine_map<(i, j) -> (i, j)>\n#t = affine_map<(i, j) -> (j, i)>"
KIND = "tensor<3x3xf32>"


def operator(body: str, yields: str, rkernel: str = "map.rows", facts: str = "") -> ROperatorOp:
    """An rOperator of two matrices a and b."""
    results = ", ".join([KIND] * (yields.count("%")))
    module = irkit.parse(f"""{MAPS}
task.roperator @f(%a: {KIND}, %b: {KIND}) -> ({results})
    attributes {{grid = array<i64: 1, 1>, rkernel = "{rkernel}", parameters = {{}}{facts}}} {{
  %e = tensor.empty() : {KIND}
  {body}
  task.yield {yields} : {results}
}}""")
    return next(op for op in module.ops if isinstance(op, ROperatorOp))


def generic(result: str, a: str, b: str, value: str) -> str:
    """One elementwise op that reads %a by map `a` and %b by map `b`."""
    return f"""{result} = linalg.generic {{indexing_maps = [{a}, {b}, #i],
      iterator_types = ["parallel", "parallel"]}} ins(%a, %b : {KIND}, {KIND}) outs(%e : {KIND}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.{value} : f32
    linalg.yield %v : f32
  }} -> {KIND}"""


TWO = generic("%r", "#i", "#i", "addf %q, %q") + "\n" + generic("%s", "#i", "#i", "mulf %p, %q")


@pytest.mark.parametrize("name", ["map.rows", "map.short"])
def test_all_is_read_before_anything_is_written(name: str) -> None:
    """Result 0 is written over a, of which result 1 is made."""
    op = operator(TWO, "%r, %s", name, ", in_place = array<i64: 0, 0, 1, 1>")
    assert why_illegal(op, CPU) is None
    rkernel = registry.find("cpu", name)
    a, b = (np.random.default_rng(n).standard_normal((3, 3)).astype(np.float32) for n in (0, 1))
    want = [b + b, a * b]
    cpu_emulator.run(rkernel, bind(op, root_of(op), rkernel, 1), [a, b, a, b], 0, 1, 1)
    np.testing.assert_array_equal([a, b], want)


def test_results_may_be_written_over_the_other_operand() -> None:
    """Which operand is where a result is written does not matter, as long as each element reads its own."""
    op = operator(TWO, "%r, %s", facts=", in_place = array<i64: 0, 1, 1, 0>")
    assert why_illegal(op, CPU) is None


@pytest.mark.parametrize(
    ("operand", "reason"),
    [(0, None), (1, "operand 1 is read elsewhere than where result 0 is written")],
)
def test_other_elements_are_not_read(operand: int, reason: str | None) -> None:
    """Of a its own, of b those across the diagonal."""
    body = generic("%r", "#i", "#t", "addf %p, %q")
    op = operator(body, "%r", facts=f", in_place = array<i64: {operand}, 0>")
    assert why_illegal(op, CPU) == reason


def test_what_a_root_reads_is_not_written_over() -> None:
    """The softmax of a looks at all of a row; b is added to it element by element."""
    body = f"""%m = te.softmax %a : ({KIND}) -> {KIND}
  %r = linalg.generic {{indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]}}
      ins(%m, %b : {KIND}, {KIND}) outs(%e : {KIND}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  }} -> {KIND}"""
    for operand, reason in ((0, "operand 0 is read elsewhere"), (1, None)):
        facts = f", in_place = array<i64: {operand}, 0>"
        found = why_illegal(operator(body, "%r", "softmax.rows", facts), CPU)
        assert found is None if reason is None else found is not None and reason in found


def test_an_rkernel_may_say_that_it_stores_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    own = dataclasses.replace(registry.find("cpu", "map.rows"), stores_again=True)
    monkeypatch.setattr(registry, "find", lambda target, name: own)
    op = operator(TWO, "%r, %s", facts=", in_place = array<i64: 0, 0>")
    assert "may store an element twice" in str(why_illegal(op, CPU))
    op.in_place = None
    assert why_illegal(op, CPU) is None
