"""Sums over dimensions that lie side by side, those of one element among them, are sums of all."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import irkit

SHAPES = list(itertools.product((1, 2, 3), repeat=4))


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_small_arrays(seed: int) -> None:
    """Five sums of one array in a program, each over a run of its dimensions."""
    draw = random.Random(seed)
    for shape in draw.sample(SHAPES, 8):
        ends = draw.sample([(a, b) for a in range(4) for b in range(a, 4)], 5)
        runs = [list(range(a, b + 1)) for a, b in ends]
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
        found = irkit.compile(irkit.parse(sums(shape, runs)), device="cpu1", cache=False)(x)
        for axes, y in zip(runs, found, strict=True):
            np.testing.assert_array_equal(y, x.sum(tuple(axes), keepdims=True), f"{shape} {axes}")


def sums(shape: tuple[int, ...], runs: list[list[int]]) -> str:
    given = f"tensor<{'x'.join(map(str, shape))}xf32>"
    lines: list[str] = []
    results: list[str] = []
    for number, axes in enumerate(runs):
        kept = "x".join(str(1 if d in axes else s) for d, s in enumerate(shape))
        results.append(f"tensor<{kept}xf32>")
        along = ", ".join(map(str, axes))
        how = f'{{kind = "sum", axes = array<i64: {along}>, keepdims = true}}'
        lines.append(f"%y{number} = graph.reduce %x {how} : ({given}) -> {results[-1]}")
    names = ", ".join(f"%y{n}" for n in range(len(runs)))
    types = ", ".join(results)
    body = "\n".join(lines)
    return (
        f"func.func @main(%x: {given}) -> ({types}) {{\n{body}\nfunc.return {names} : {types}\n}}"
    )
