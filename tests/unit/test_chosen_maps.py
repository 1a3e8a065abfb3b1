"""Maps that a mask in memory chooses for: blocks where it holds for no element; what is written in place."""

# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
import pytest
from test_costs import only

import irkit
from irkit.dialects.task import ROperatorOp
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.legality import why_illegal
from irkit.schedule.devices import device
from irkit.weights import WeightStore

CPU = device("cpu2")
MODULE = """
func.func @main(%m: tensor<{s}xi1>, %x: tensor<{s}xf64>, %y: tensor<{s}xf64>)
    -> (tensor<{s}xf64>, tensor<{s}xi1>) {{
  %0 = graph.sqrt %x : (tensor<{s}xf64>) -> tensor<{s}xf64>
  %1 = graph.where %m, %0, %y : (tensor<{s}xi1>, tensor<{s}xf64>, tensor<{s}xf64>) -> tensor<{s}xf64>
  %2 = graph.compare %x, %y {{predicate = "gt"}} : (tensor<{s}xf64>, tensor<{s}xf64>) -> tensor<{s}xi1>
  %3 = graph.and %2, %m : (tensor<{s}xi1>, tensor<{s}xi1>) -> tensor<{s}xi1>
  func.return %1, %3 : tensor<{s}xf64>, tensor<{s}xi1>
}}"""


def masks(size: int) -> dict[str, np.ndarray]:
    """Masks of few elements, at borders of blocks of 128 above all."""
    made = {name: np.zeros(size, bool) for name in ("none", "first", "last", "border", "block")}
    made["first"][0] = made["last"][-1] = made["border"][127] = True
    made["block"][128:256] = True
    made["some"] = np.random.default_rng(0).random(size) < 0.5
    return {**made, "all": np.ones(size, bool)}


@pytest.mark.parametrize("name", ["cpu1", "cpu2", "cpu7"])
@pytest.mark.parametrize("shape", ["256", "1000", "3x257", "2x3x300"])
def test_every_mask(shape: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN of a square root that is not chosen is not seen."""
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "map"), [registry.find("cpu", "map.chosen")])
    text = MODULE.format(s=shape)
    program = irkit.compile(irkit.parse(text), "cpu", device=name, cache=False, mode="serial")
    assert "map.chosen" in program.ir()
    sizes = tuple(map(int, shape.split("x")))
    x, y = np.random.default_rng(1).normal(size=(2, *sizes))
    for mask in masks(x.size).values():
        given = [mask.reshape(sizes), x, y]
        with np.errstate(invalid="ignore"):
            want = run_module(irkit.parse(text), WeightStore(), given)
        for got, expected in zip(program.run(given), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_which_masks_are_asked() -> None:
    """Those in memory, at the element itself, of rows of two blocks at least, and of all results."""

    def chosen(text: str) -> bool:
        program = irkit.compile(irkit.parse(text), "cpu", device="cpu1", cache=False)
        return "map.chosen" in program.ir()

    text = MODULE.format(s="1000")
    assert chosen(text)
    assert not chosen(MODULE.format(s="255"))
    assert not chosen(text.replace("return %1, %3", "return %1, %2")), "one result is not masked"
    assert not chosen(text.replace("graph.and %2, %m", "graph.or %2, %m"))
    computed = text.replace("where %m,", "where %2,").splitlines()
    computed[4], computed[5] = computed[5], computed[4]
    assert not chosen("\n".join(computed)), "the masks are two"


def test_a_mask_of_another_order_is_not_asked() -> None:
    text = """
func.func @main(%m: tensor<300x300xi1>, %x: tensor<300x300xf64>, %y: tensor<300x300xf64>)
    -> tensor<300x300xf64> {
  %t = graph.transpose %m {permutation = array<i64: 1, 0>} : (tensor<300x300xi1>) -> tensor<300x300xi1>
  %0 = graph.where %t, %x, %y
    : (tensor<300x300xi1>, tensor<300x300xf64>, tensor<300x300xf64>) -> tensor<300x300xf64>
  func.return %0 : tensor<300x300xf64>
}"""
    program = irkit.compile(irkit.parse(text), "cpu", device="cpu1", cache=False)
    assert "map.chosen" not in program.ir()
    mask, (x, y) = np.tri(300, dtype=bool), np.random.default_rng(0).normal(size=(2, 300, 300))
    np.testing.assert_array_equal(program.run([mask, x, y])[0], np.where(mask.T, x, y))


def test_it_is_priced_by_the_blocks_that_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven tenths of what computes everything, and the mask of each element."""
    text = MODULE.format(s="100000")
    found = only(text, "cpu1")
    assert found.rkernel == "map.chosen"
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "map"), [registry.find("cpu", "map.rows")])
    whole = only(text, "cpu1")
    assert found.work["divide"] == pytest.approx(0.7 * whole.work["divide"])
    assert 0.25e5 < found.work["op"] - 0.7 * whole.work["op"] < 0.5e5
    assert 0.3 * whole.work["byte"] < found.work["byte"] < 0.75 * whole.work["byte"]


IN_PLACE = """
#i = affine_map<(i) -> (i)>
#r = affine_map<(i) -> (299 - i)>
task.roperator @f(%m: tensor<300xi1>, %x: tensor<300xf64>) -> (tensor<300xi1>, tensor<300xf64>)
    attributes {{grid = array<i64: 1>, rkernel = "map.chosen", parameters = {{BLOCK = 128 : i64}},
      in_place = array<i64: 0, 0, 1, 1>}} {{
  %e = tensor.empty() : tensor<300xi1>
  %d = tensor.empty() : tensor<300xf64>
  %n, %y = linalg.generic {{indexing_maps = [#i, {x}, #i, #i], iterator_types = ["parallel"]}}
      ins(%m, %x : tensor<300xi1>, tensor<300xf64>) outs(%e, %d : tensor<300xi1>, tensor<300xf64>) {{
  ^bb0(%p: i1, %q: f64, %o: i1, %s: f64):
    %v = arith.mulf %q, %q : f64
    %w = arith.select %p, %v, %q : f64
    %g = arith.cmpf ogt, %v, %q : f64
    %h = arith.andi %p, %g : i1
    linalg.yield %h, %w : i1, f64
  }} -> (tensor<300xi1>, tensor<300xf64>)
  task.yield %n, %y : tensor<300xi1>, tensor<300xf64>
}}"""


@pytest.mark.parametrize(
    ("x", "reason"),
    [("#i", None), ("#r", "operand 1 is read elsewhere than where result 1 is written")],
)
def test_a_mask_is_written_over_once_it_was_asked(x: str, reason: str | None) -> None:
    module = irkit.parse(IN_PLACE.format(x=x))
    op = next(op for op in module.ops if isinstance(op, ROperatorOp))
    assert why_illegal(op, CPU) == reason


def orbit(c: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """In which round each number was left, and what it was then."""
    places = np.arange(c.size)
    left, last = np.zeros(c.size, np.int64), np.zeros(c.size, c.dtype)
    z = np.zeros(c.shape, c.dtype)
    for i in range(most):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2.0
        left[places[gone]] = i + 1
        last[places[gone]] = z[gone]
        np.logical_not(gone, gone)
        z, c, places = z[gone], c[gone], places[gone]
    return left, last


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_loop_computes_where_something_is_left(dtype: str) -> None:
    """What is left decides each round: the array, its mask and what is written are chosen by it alone."""
    grid = np.linspace(-3, 1, 700).astype(dtype)
    c = grid + (0.4j * np.linspace(-1, 1, 700) if dtype == "complex128" else 0)
    traced = irkit.jit(target="cpu", device="cpu1")(orbit)
    with np.errstate(all="ignore"):
        want = orbit(c, 60)
    for got, expected in zip(traced(c, 60), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert "rKernel map.chosen" in traced.source
