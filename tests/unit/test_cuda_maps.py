"""Which rKernel a map has on a GPU: in vectors where all that it reads lies side by side."""

from __future__ import annotations

import re

import pytest

import irkit


def rkernels(text: str) -> list[str]:
    program = irkit.compile(irkit.parse(text), target="cuda", device="h200", cache=False)
    return re.findall(r'rkernel = "([^"]*)"', str(program.ir("schedule")))


def unary(op: str, shape: str) -> str:
    t = f"tensor<{shape}xf32>"
    return f"""func.func @main(%x: {t}) -> {t} {{
      %y = graph.{op} %x : ({t}) -> {t}
      func.return %y : {t}
    }}"""


@pytest.mark.parametrize(
    ("op", "shape", "rkernel"),
    [
        ("tanh", "600x1000", "map.fours"),
        ("tanh", "8x64x50x60", "map.fours"),
        ("erf", "600x1000", "map.fours"),
        # No whole fours; few elements.
        ("tanh", "600x1001", "map.fetched"),
        ("tanh", "60x100", "map.elements"),
    ],
)
def test_many_elements_in_fours(op: str, shape: str, rkernel: str) -> None:
    assert rkernels(unary(op, shape)) == [rkernel]


@pytest.mark.parametrize(("axis", "rkernel"), [(0, "map.fours"), (1, "map.fetched")])
def test_slices_that_are_picked_whole(axis: int, rkernel: str) -> None:
    shape = "2000x512" if axis == 0 else "1000x2000"
    text = f"""func.func @main(%x: tensor<1000x512xf32>, %i: tensor<2000xi64>) -> tensor<{shape}xf32> {{
      %y = graph.gather %x, %i {{axis = {axis} : i64}}
        : (tensor<1000x512xf32>, tensor<2000xi64>) -> tensor<{shape}xf32>
      func.return %y : tensor<{shape}xf32>
    }}"""
    assert rkernels(text) == [rkernel]
