"""cut-sums: parts of sums, and their sum, are what the statement says, by steps and by irkit's rule."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import ExpressionOp
from irkit.expressions.binding import bind, program_of
from irkit.interp.graph import run_graph
from irkit.passes.graph.cut_sums import CutSumsPass
from irkit.rkernels.scheduled.parts import parts_by_rule
from irkit.schedule.devices import device
from irkit.weights import WeightStore

ELEMENTS = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
TEXTS = (
    ("C(m, n) +=! A(m, k) * B(k, n)", lambda m, n, k, j: ((m, k), (k, n)), "mnk", "k"),
    ("C(m, n) +=! A(k, m) * B(n, k)", lambda m, n, k, j: ((k, m), (n, k)), "mnk", "k"),
    ("C(m) +=! A(j, k, m) * B(k, j)", lambda m, n, k, j: ((j, k, m), (k, j)), "mjk", "jk"),
    ("S() +=! A(k) * B(k)", lambda m, n, k, j: ((k,), (k,)), "k", "k"),
    ("S(m) max=! X(m, k) + Y(k)", lambda m, n, k, j: ((m, k), (k,)), "mk", "k"),
    ("S(m) +=! X(m, k) * X(m, k)", lambda m, n, k, j: ((m, k),), "mk", "k"),
    ("S(n) min=! X(k, n + j) * W(k) where j in 0:3, n in 0:4",
     lambda m, n, k, j: ((k, 6), (k,)), "njk", "k"),
)  # fmt: skip


def module(text: str, shapes: Any, element: str, schedule: str) -> ModuleOp:
    """A function of one scheduled statement."""
    dtype = np.dtype(ELEMENTS[element])
    (step,), found = bind(program_of(text), shapes, [dtype] * len(shapes))

    def tensor(shape: Any) -> str:
        return f"tensor<{''.join(f'{s}x' for s in shape)}{element}>"

    values = [f"%{name}" for name in step.operands]
    loops = ", ".join(x.name for x in step.domain.loops)
    types = [tensor(s) for s in shapes]
    given = ", ".join(f"{v}: {t}" for v, t in zip(values, types, strict=True))
    said = f'#loop.schedule<"for {loops} of {", ".join(step.operands)}; {schedule}">'
    result = tensor(found[step.statement.target])
    op = f'graph.expression {", ".join(values)} {{text = "{text}", schedule = {said}}}'
    return irkit.parse(
        f"func.func @main({given}) -> {result} {{\n  %y = {op} : ({', '.join(types)}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_cuts(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    text, shapes_of, _, reduced = draw.choice(TEXTS)
    sizes = {"k": draw.choice([4, 6, 12]), "j": draw.choice([2, 4])}
    shapes = shapes_of(draw.randint(1, 5), draw.randint(1, 5), sizes["k"], sizes["j"])
    cuts = {n: draw.choice([p for p in (2, 3, 4) if sizes[n] % p == 0]) for n in reduced}
    steps = "; ".join(f"bind {name} to veu in {parts}" for name, parts in cuts.items())
    element = draw.choice(list(ELEMENTS))
    made = module(text, shapes, element, steps)
    given = [rng.integers(-5, 6, s).astype(ELEMENTS[element]) for s in shapes]
    (want,) = run_graph(made, WeightStore(), given)
    CutSumsPass().apply(IrkitContext(), made)
    made.verify()
    statements = [op for op in made.walk() if isinstance(op, ExpressionOp)]
    assert len(statements) == 2
    assert statements[0].results[0].type.get_shape()[: len(cuts)] == tuple(cuts.values())
    np.testing.assert_array_equal(run_graph(made, WeightStore(), given)[0], want)
    again = str(made)
    CutSumsPass().apply(IrkitContext(), made)
    assert str(made) == again


@pytest.mark.parametrize(("shape", "parts"), [((128, 1000), 4), ((65536, 1024), 1), ((8, 8), 128)])
def test_the_rule_fills_a_gpu(shape: tuple[int, ...], parts: int) -> None:
    """The reference's M1 leaves three of four multiprocessors without a tile; M3 has tiles for all."""
    found = parts_by_rule(shape, {"k": 4032 if parts < 8 else 65536}, True, device("h200"))
    assert found.get("k", 1) == parts


@pytest.mark.parametrize("target", ["cpu2", "h200"])
def test_what_the_rule_cuts_it_cuts_once(target: str) -> None:
    for size in (16384, 5000, 98304, 100000):
        made = module("C(m, n) +=! A(k, m) * B(k, n)", ((size, 4), (size, 4)), "f32", "rule")
        CutSumsPass(device=target).apply(IrkitContext(), made)
        first = str(made)
        CutSumsPass(device=target).apply(IrkitContext(), made)
        assert str(made) == first


def test_an_operator_of_few_results() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((40000, n)) for n in (3, 5))
    product = irkit.te.op("C(m, n) +=! A(k, m) * B(k, n)", "rule", target="cpu", device="cpu2")
    np.testing.assert_allclose(product(a, b), a.T @ b, rtol=1e-11, atol=1e-9)
    assert "k_part" in product.jitted.ir("graph")
    shared = irkit.te.op("S() +=! A(k) * B(k)", "bind k to veu in 4", target="cpu", device="cpu2")
    np.testing.assert_allclose(shared(a[:, 0].copy(), b[:, 0].copy()), a[:, 0] @ b[:, 0], rtol=1e-9)


REFUSED = [
    ("O(i) +=! A(i + k) * K(k)", ((9,), (4,)), "which 'A' does not read by itself"),
    ("O(i) +=! A(i, k) * float(k)", ((6, 4),), "which is a number in the statement"),
    ("O(i) +=! A(i, k + 1) where k in 0:4", ((6, 6),), "which 'A' does not read by itself"),
    ("O(i) +=! A(i, k) where k in 0:4", ((6, 6),), "which 'A' does not read by itself"),
    ("O(i, j) +=! A(i, k) * A(k, j)", ((4, 4),), "what reads 'A' in several ways"),
]


@pytest.mark.parametrize(("text", "shapes", "message"), REFUSED)
def test_what_has_no_parts_is_refused(text: str, shapes: Any, message: str) -> None:
    made = module(text, shapes, "f32", "bind k to veu in 2")
    with pytest.raises(Exception, match=message):
        CutSumsPass().apply(IrkitContext(), made)
