"""Maps of rows of a few columns: what is chosen for a width computes what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import irkit

MODULE = """
func.func @main(%x: tensor<?x{n}x{t}>, %r: tensor<?x1x{t}>) -> tensor<?x{n}x{t}>
    attributes {{irkit.fastmath = #arith.fastmath<{flags}>}} {{
  %shift = arith.constant dense<{shift}> : tensor<{n}x{t}>
  %scale = arith.constant dense<{scale}> : tensor<{n}x{t}>
  %0 = graph.sub %x, %shift : (tensor<?x{n}x{t}>, tensor<{n}x{t}>) -> tensor<?x{n}x{t}>
  %1 = graph.div %0, %scale : (tensor<?x{n}x{t}>, tensor<{n}x{t}>) -> tensor<?x{n}x{t}>
  %2 = graph.sqrt %r : (tensor<?x1x{t}>) -> tensor<?x1x{t}>
  %3 = graph.div %1, %2 : (tensor<?x{n}x{t}>, tensor<?x1x{t}>) -> tensor<?x{n}x{t}>
  %4 = graph.exp %3 : (tensor<?x{n}x{t}>) -> tensor<?x{n}x{t}>
  func.return {result} : tensor<?x{n}x{t}>
}}
"""


def numbers(values: np.ndarray) -> str:
    """A dense attribute's elements."""
    return f"[{', '.join(repr(float(v)) for v in values)}]"


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("width", [2, 3, 7, 8, 13, 16, 31, 33, 63])
def test_every_width(width: int, element: str) -> None:
    dtype = np.dtype("float32" if element == "f32" else "float64")
    rng = np.random.default_rng(width)
    shift, scale = rng.normal(size=width), rng.uniform(0.5, 2, width)
    given = {"n": width, "t": element, "shift": numbers(shift), "scale": numbers(scale)}
    for result, flags in (("%3", "none"), ("%4", "afn")):
        text = MODULE.format(**given, result=result, flags=flags)
        program = irkit.compile(irkit.parse(text), "cpu", mode="serial")
        # Where most of a vector's lanes would be masked, rows are computed one element after another.
        name = "map.rows" if width in (2, 3, 33) else "map.masked"
        assert name in program.ir("schedule")
        for rows in (0, 1, 5, 40):
            x = rng.normal(size=(rows, width)).astype(dtype)
            r = rng.uniform(0.5, 2, (rows, 1)).astype(dtype)
            want = (x - shift.astype(dtype)) / scale.astype(dtype) / np.sqrt(r)
            if flags == "none":
                np.testing.assert_array_equal(program(x, r), want)
            else:
                np.testing.assert_allclose(
                    program(x, r), np.exp(want), rtol=8 * float(np.finfo(dtype).eps)
                )
