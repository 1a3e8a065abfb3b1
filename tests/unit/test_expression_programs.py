"""Random tensor expressions, compiled, against loops in NumPy; products against einsum."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.graph.semantics.expression import evaluate_step
from irkit.dialects.types import tensor_of
from irkit.driver.registry import register_dialects
from irkit.expressions.binding import bind, program_of
from irkit.frontends.module import GraphBuilder
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.model_info import ModelInfo

SIZES = {"i": 3, "j": 4, "k": 2, "l": 5}


class Drawn:
    """A random statement, and its arrays."""

    def __init__(self, seed: int) -> None:
        self.random, self.arrays = random.Random(seed), {}
        self.rng = np.random.default_rng(seed)
        names = self.random.sample("ijkl", self.random.randint(1, 4))
        split = self.random.randint(0, len(names))
        self.parallel, self.reduced = names[:split], names[split:]
        self.operator = self.random.choice(("+", "max", "min", "*")) if self.reduced else ""
        self.names = names
        value = self.value(self.random.randint(1, 3))
        ranges = ", ".join(f"{n} in 0:{SIZES[n]}" for n in names)
        sign = f"{self.operator}=!" if self.operator else "="
        self.text = f"O({', '.join(self.parallel)}) {sign} {value} where {ranges}"

    def value(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(
                (self.read(), self.read(), "1.5", self.random.choice(self.names))
            )
        kind = self.random.choice(("pair", "pair", "function", "choice", "padded"))
        if kind == "function":
            return f"{self.random.choice(('tanh', 'sin', 'abs'))}({self.read()} + {self.value(depth - 1)})"
        if kind == "choice":
            n = self.random.choice(self.names)
            return f"({n} % 2 == 0 ? {self.value(depth - 1)} : {self.value(depth - 1)} + {self.read()})"
        if kind == "padded":
            n = self.random.choice(self.names)
            x = self.array(SIZES[n] - 1)
            return f"({n} >= 1 ? {x}({n} - 1) : {self.value(depth - 1)})"
        return f"({self.value(depth - 1)} {self.random.choice('+-*')} {self.read()})"

    def array(self, *shape: int) -> str:
        name = f"T{len(self.arrays)}"
        self.arrays[name] = self.rng.uniform(-1, 1, shape).astype(np.float32)
        return name

    def index(self) -> tuple[str, int]:
        n = self.random.choice(self.names)
        m = self.random.choice(self.names)
        if m != n and self.random.random() < 0.3:
            return f"2 * {n} + {m}", 2 * (SIZES[n] - 1) + SIZES[m]
        if self.random.random() < 0.2:
            return f"{SIZES[n] - 1} - {n}", SIZES[n]
        if self.random.random() < 0.2:
            return f"{n} / 2", (SIZES[n] + 1) // 2
        return n, SIZES[n]

    def read(self) -> str:
        indices = [self.index() for _ in range(self.random.randint(1, 3))]
        name = self.array(*(size for _, size in indices))
        return f"{name}({', '.join(text for text, _ in indices)})"


def by_hand(drawn: Drawn) -> np.ndarray:
    """The loops, one element after another, by Python's own reading of the text."""
    value = drawn.text.partition("=!" if drawn.operator else "=")[2].partition(" where ")[0]
    code = compile(python(value), "expression", "eval")
    reads = {n: (lambda *i, a=a: float(a[i])) for n, a in drawn.arrays.items()}
    functions = {"tanh": np.tanh, "sin": np.sin, "abs": abs}
    shape = [SIZES[n] for n in drawn.parallel]
    first = {"+": 0.0, "*": 1.0, "max": -np.inf, "min": np.inf, "": 0.0}[drawn.operator]
    combine = {"+": lambda x, y: x + y, "*": lambda x, y: x * y, "max": max, "min": min}
    result = np.full(shape, first)
    for point in itertools.product(*(range(SIZES[n]) for n in drawn.names)):
        place = point[: len(shape)]
        term = eval(code, {**reads, **functions, **dict(zip(drawn.names, point, strict=True))})
        result[place] = combine[drawn.operator](result[place], term) if drawn.operator else term
    return result


def python(text: str) -> str:
    """`(c ? x : y)` as Python says it, and quotients of whole numbers."""
    while "?" in text:
        at = text.index("?")
        left = opening(text, at)
        colon, right = closing(text, at)
        parts = text[left + 1 : at], text[at + 1 : colon], text[colon + 1 : right]
        text = f"{text[:left]}(({parts[1]}) if ({parts[0]}) else ({parts[2]})){text[right + 1 :]}"
    return text.replace(" / ", " // ").strip()


def opening(text: str, at: int) -> int:
    depth = 0
    for n in range(at, -1, -1):
        depth += {"(": -1, ")": 1}.get(text[n], 0)
        if depth < 0:
            return n
    raise ValueError(text)


def closing(text: str, at: int) -> tuple[int, int]:
    depth, colon, choices = 0, 0, 0
    for n in range(at + 1, len(text)):
        depth += {"(": 1, ")": -1}.get(text[n], 0)
        choices += (text[n] == "?") if depth == 0 else 0
        if text[n] == ":" and depth == 0 and not colon:
            colon = n
        if depth < 0:
            return colon, n
    raise ValueError(text)


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_are_the_loops_that_they_say(seed):
    drawn = Drawn(seed)
    program = program_of(drawn.text)
    given = [drawn.arrays[p.name] for p in program.parameters]
    want = by_hand(drawn)
    (step,), _ = bind(program, [a.shape for a in given], [a.dtype for a in given])
    meaning = evaluate_step(
        step, {p.name: a for p, a in zip(program.parameters, given, strict=True)}
    )
    np.testing.assert_allclose(meaning, want, rtol=2e-5, atol=2e-5)
    b = GraphBuilder(
        [(p.name, tensor_of(a)) for p, a in zip(program.parameters, given, strict=True)]
    )
    model = b.finish(
        [("y", b.ops(graph.ExpressionOp, *b.inputs, text=drawn.text)[0])],
        ModelInfo("network", b.names, ("y",)),
    )
    np.testing.assert_allclose(
        run_graph(model.module, model.weights, given)[0], want, rtol=2e-5, atol=2e-5
    )
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    module = model.module.clone()
    ConvertGraphToTensor().apply(ctx, module)
    module.verify()
    np.testing.assert_allclose(
        run_tensor(module, model.weights, given)[0], want, rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_random_expressions_run(seed):
    drawn = Drawn(seed)
    op = irkit.te.op(drawn.text, target="cpu", mode="serial")
    got = op(*(drawn.arrays[name] for name in op.parameters))
    np.testing.assert_allclose(got, by_hand(drawn), rtol=2e-5, atol=2e-5)


PRODUCTS = (
    "ik,kj->ij",
    "bik,bkj->bij",
    "ij,ij->i",
    "ijk,kl->lij",
    "i,j->ji",
    "ij,jk->ik",
    "ijkl,lk->ji",
    "i,i->",
    "i,->",
    ",i->",
    "ij,->i",
    "ij,->j",
    "ij,ij->",
)


@pytest.mark.parametrize("spec", PRODUCTS)
def test_products_are_those_of_einsum(spec):
    inputs, _, output = spec.partition("->")
    left, right = inputs.split(",")
    sign = "+=!" if set(left + right) - set(output) else "="
    text = f"O({', '.join(output)}) {sign} A({', '.join(left)}) * B({', '.join(right)})"
    rng = np.random.default_rng(0)
    size = {n: 3 + number for number, n in enumerate(sorted(set(left + right)))}
    a, b = (rng.standard_normal([size[n] for n in names]) for names in (left, right))
    got = irkit.te.op(text, target="cpu", mode="serial")(a, b)
    np.testing.assert_allclose(got, np.einsum(spec, a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", ["", "i"])
def test_sums_of_more_terms_than_a_column_of_a_product_needs(rows: str) -> None:
    a, b = np.arange(700.0), np.arange(700.0) % 7
    where = " where i in 0:3" if rows else ""
    dot = irkit.te.op(f"O({rows}) +=! A(k) * B(k){where}", target="cpu")
    np.testing.assert_array_equal(dot(a, b), np.full((3,) if rows else (), a @ b))
    scaled = irkit.te.op(f"O({rows}) +=! A(k) * B(){where}", target="cpu")
    np.testing.assert_array_equal(scaled(a, np.array(2.0)), np.full((3,) * len(rows), a.sum() * 2))


DOT = """
func.func @main(%x: tensor<700xf64>, %y: tensor<700xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<f64>
  %start = linalg.fill ins(%zero : f64) outs(%empty : tensor<f64>) -> tensor<f64>
  %dot = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>,
      affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%x, %y : tensor<700xf64>, tensor<700xf64>) outs(%start : tensor<f64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %term = arith.mulf %a, %b : f64
    %next = arith.addf %sum, %term : f64
    linalg.yield %next : f64
  } -> tensor<f64>
  func.return %dot : tensor<f64>
}
"""


def test_a_contraction_to_one_number_that_is_written_in_the_ir_runs(tmp_path: Path) -> None:
    path = tmp_path / "dot.mlir"
    path.write_text(DOT)
    x, y = np.arange(700.0), np.arange(700.0) % 7
    found = irkit.compile(path, target="cpu").run([x, y])[0]
    np.testing.assert_array_equal(found, x @ y)


@pytest.mark.parametrize("operator", ["+", "*", "max", "min"])
@pytest.mark.parametrize("read", ["7 - k", "k"])
def test_one_number_of_elements_that_are_read_several_times(operator: str, read: str) -> None:
    a = np.array([1.0, 2.0, -1.0, 3.0, 0.5, 1.0, -2.0, 1.0])
    text = f"O() {operator}=! A({read}) where n in 0:3, k in 0:8, m in 0:1"
    reduce = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}[operator].reduce
    np.testing.assert_allclose(irkit.te.op(text, target="cpu")(a), reduce(np.tile(a, 3)))
