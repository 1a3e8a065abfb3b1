"""What readers compute for themselves on a GPU: random graphs mean what they mean on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.tensor import run_tensor
from irkit.weights import WeightStore

FULL, ROW = "tensor<6x8xf64>", "tensor<6x1xf64>"


def text(seed: int) -> str:
    """Elementwise ops and sums of a product, of which some are returned."""
    rng = np.random.default_rng(seed)
    lines = [f"  %v0 = graph.matmul %x, %w : ({FULL}, tensor<8x8xf64>) -> {FULL}"]
    full, rows = ["%x", "%v0"], ["%r"]

    def add(op: str, operands: list[str], to: list[str], given: str, made: str) -> None:
        name = f"%v{len(lines)}"
        lines.append(f"  {name} = graph.{op} {', '.join(operands)} : ({given}) -> {made}")
        to.append(name)

    def pick(values: list[str]) -> str:
        return values[-1 - int(rng.integers(min(4, len(values))))]

    for _ in range(int(rng.integers(4, 16))):
        draw = rng.random()
        if draw < 0.4:
            add(str(rng.choice(["erf", "tanh", "neg", "abs"])), [pick(full)], full, FULL, FULL)
        elif draw < 0.75:
            op = str(rng.choice(["add", "mul", "sub"]))
            add(op, [pick(full), pick(full)], full, f"{FULL}, {FULL}", FULL)
        elif draw < 0.9:
            add("mul", [pick(full), pick(rows)], full, f"{FULL}, {ROW}", FULL)
        else:
            name = f"%v{len(lines)}"
            kind = '{kind = "sum", axes = array<i64: 1>, keepdims = true}'
            lines.append(f"  {name} = graph.reduce {pick(full)} {kind} : ({FULL}) -> {ROW}")
            rows.append(name)
    given = [*full[-2:], rows[-1], pick(full)]
    types = f"{FULL}, {FULL}, {ROW}, {FULL}"
    head = f"func.func @main(%x: {FULL}, %w: tensor<8x8xf64>, %r: {ROW}) -> ({types}) {{\n"
    return head + "\n".join(lines) + f"\n  func.return {', '.join(given)} : {types}\n}}\n"


def meaning(source: str, device: str | None, inputs: list[Any]) -> list[Any]:
    ctx, module = IrkitContext(), irkit.parse(source)
    register_dialects(ctx)
    for level in ("graph", "tensor"):
        run_level(ctx, module, level, device)
    return run_tensor(module, WeightStore(), inputs)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    rng, source = np.random.default_rng(seed), text(seed)
    inputs = [rng.standard_normal(s) for s in ((6, 8), (8, 8), (6, 1))]
    want = meaning(source, None, inputs)
    for a, b in zip(meaning(source, "h200", inputs), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_gradient_of_gelu_reads_the_product_alone() -> None:
    """Of what forward makes of the product, nothing is stored but the result."""
    made = "tensor<1024x256xf32>"
    source = f"""func.func @main(%x: tensor<1024x256xf32>, %w: tensor<256x256xf32>, %u: tensor<256x256xf32>)
        -> ({made}, {made}) {{
      %c = arith.constant dense<0.70710678> : tensor<f32>
      %p = graph.matmul %x, %w : (tensor<1024x256xf32>, tensor<256x256xf32>) -> {made}
      %s = graph.mul %p, %c : ({made}, tensor<f32>) -> {made}
      %e = graph.erf %s : ({made}) -> {made}
      %y = graph.mul %p, %e : ({made}, {made}) -> {made}
      %t = graph.matmul %y, %u : ({made}, tensor<256x256xf32>) -> {made}
      %q = graph.mul %s, %s : ({made}, {made}) -> {made}
      %n = graph.neg %q : ({made}) -> {made}
      %g = graph.exp %n : ({made}) -> {made}
      %a = graph.mul %p, %g : ({made}, {made}) -> {made}
      %b = graph.add %a, %e : ({made}, {made}) -> {made}
      %z = graph.mul %b, %t : ({made}, {made}) -> {made}
      func.return %y, %z : {made}, {made}
    }}"""
    program = irkit.compile(irkit.parse(source), target="cuda", device="h200", cache=False)
    roperators = [
        line
        for line in str(program.ir("schedule")).splitlines()
        if "task.roperator @" in line and "@pack" not in line
    ]
    assert len(roperators) == 2
    forward, backward = (line.split(" attributes")[0].split("->") for line in roperators)
    assert forward[1].count(made) == 2
    # What forward gave, twice, once through the product.
    assert backward[0].count(made) == 2
