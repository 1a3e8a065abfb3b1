"""The pass `differentiate`: where there is no derivative, loops, what is refused, random programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_graphs import RandomGraph
from test_gradients import check_derivatives, derived, moving, ran

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.driver.files.parsing import parse_module
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.model_info import ModelInfo
from irkit.passes.graph.differentiate import Differentiate
from irkit.passes.graph.differentiation import Differentiation


def parsed(text: str) -> ImportedModel:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ImportedModel(parse_module(ctx, text, "test"), ctx.weights, ModelInfo("network", (), ()))


def one_op(op: str, operands: int, type: str = "tensor<?xf64>", size: int = 1) -> ImportedModel:
    t = type.replace("?", str(size))
    names = ["%x", "%y"][:operands]
    head = ", ".join(f"{n}: {t}" for n in names)
    types = ", ".join([t] * operands)
    return parsed(
        f"func.func @main({head}) -> {t} {{\n%z = {op.format(', '.join(names))} : ({types}) -> {t}\n"
        f"func.return %z : {t}\n}}"
    )


def reduced(kind: str, shape: str, to: str) -> ImportedModel:
    """Over the last axis."""
    axis = shape.count("x")
    props = f'kind = "{kind}", axes = array<i64: {axis - 1}>, keepdims = false'
    return parsed(
        f"func.func @main(%x: tensor<{shape}f64>) -> tensor<{to}f64> {{\n"
        f"%y = graph.reduce %x {{{props}}} : (tensor<{shape}f64>) -> tensor<{to}f64>\n"
        f"func.return %y : tensor<{to}f64>\n}}"
    )


def gradients(model: ImportedModel, *arrays: Any) -> list[list[float]]:
    """Of the sum of the one result, by each argument."""
    given = [np.array(a, np.float64) for a in arrays]
    ask = Differentiation("reverse", moving(given), (0,), value=False)
    made = ran(derived(model, ask), [*given, np.ones_like(given[0])])
    return [m.tolist() for m in made]


def test_subgradients_are_those_of_pytorch() -> None:
    kinks = [-1.0, 0.0, 1.0]
    assert gradients(one_op("graph.relu {}", 1, size=3), kinks) == [[0, 0, 1]]
    assert gradients(one_op("graph.abs {}", 1, size=3), kinks) == [[-1, 0, 1]]
    assert gradients(one_op("graph.sqrt {}", 1, size=2), [0.0, 4.0]) == [[np.inf, 0.25]]
    clip = one_op("graph.clip {} {{min = -1.0 : f64, max = 1.0 : f64}}", 1, size=5)
    assert gradients(clip, [-2.0, -1.0, 0.5, 1.0, 2.0]) == [[0, 1, 1, 1, 0]]
    for op in ("graph.max {}", "graph.min {}"):
        assert gradients(one_op(op, 2, size=1), [2.0], [2.0]) == [[0.5], [0.5]]
    assert gradients(one_op("graph.max {}", 2, size=2), [1.0, 3.0], [2.0, 2.0]) == [[0, 1], [1, 0]]
    assert gradients(one_op("graph.floor {}", 1, size=2), [0.5, 1.5]) == [[0, 0]]
    powers = gradients(one_op("graph.pow {}", 2, size=3), [0.0, 0.0, 2.0], [0.0, 2.0, 3.0])
    assert powers[0] == [0, 0, 12]
    assert powers[1][:2] == [0, 0]


def test_equal_extrema_share() -> None:
    model = reduced("max", "2x3x", "2x")
    x = np.array([[1.0, 3.0, 3.0], [5.0, 4.0, 3.0]])
    made = derived(model, Differentiation("reverse", (0,), (0,), value=False))
    (got,) = ran(made, [x, np.array([1.0, 2.0])])
    np.testing.assert_array_equal(got, [[0, 0.5, 0.5], [2, 0, 0]])


def test_a_zero_in_a_product() -> None:
    model = reduced("prod", "4x", "")
    made = derived(model, Differentiation("reverse", (0,), (0,), seeded=False, value=False))
    (got,) = ran(made, [np.array([2.0, 0.0, 3.0, 5.0])])
    np.testing.assert_array_equal(got, [0, 30, 0, 0])


LOOPS = {
    "carried": """func.func @main(%x: tensor<3xf64>, %w: tensor<10xf64>) -> tensor<3xf64> {
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c9 = arith.constant 9 : index
      %r = scf.for %i = %c1 to %c9 step %c2 iter_args(%y = %x) -> (tensor<3xf64>) {
        %0 = tensor.extract_slice %w[%i] [1] [1] : tensor<10xf64> to tensor<1xf64>
        %1 = graph.mul %y, %0 : (tensor<3xf64>, tensor<1xf64>) -> tensor<3xf64>
        %2 = graph.sin %1 : (tensor<3xf64>) -> tensor<3xf64>
        %3 = graph.add %2, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        scf.yield %3 : tensor<3xf64>
      }
      func.return %r : tensor<3xf64>
    }""",
    "written": """func.func @main(%x: tensor<6xf64>, %k: tensor<i64>) -> tensor<6xf64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %one = arith.constant dense<1> : tensor<i64>
      %r, %n = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %x, %n = %k) -> (tensor<6xf64>, tensor<i64>) {
        %j = arith.addi %i, %c1 : index
        %0 = tensor.extract_slice %y[%i] [1] [1] : tensor<6xf64> to tensor<1xf64>
        %1 = tensor.extract_slice %y[%j] [1] [1] : tensor<6xf64> to tensor<1xf64>
        %f = graph.cast %n {to = f64} : (tensor<i64>) -> tensor<f64>
        %2 = graph.mul %0, %1 : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
        %3 = graph.mul %2, %f : (tensor<1xf64>, tensor<f64>) -> tensor<1xf64>
        %4 = tensor.insert_slice %3 into %y[%j] [1] [1] : tensor<1xf64> into tensor<6xf64>
        %m = graph.add %n, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
        scf.yield %4, %m : tensor<6xf64>, tensor<i64>
      }
      func.return %r : tensor<6xf64>
    }""",
    "nested": """func.func @main(%x: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %x) -> (tensor<2xf64>) {
        %q = scf.for %j = %c0 to %c3 step %c1 iter_args(%z = %y) -> (tensor<2xf64>) {
          %0 = graph.mul %z, %w : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
          %1 = graph.add %0, %y : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
          %2 = graph.tanh %1 : (tensor<2xf64>) -> tensor<2xf64>
          scf.yield %2 : tensor<2xf64>
        }
        scf.yield %q : tensor<2xf64>
      }
      func.return %r : tensor<2xf64>
    }""",
    "never run": """func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c1 to %c0 step %c1 iter_args(%y = %x) -> (tensor<2xf64>) {
        %1 = graph.tanh %y : (tensor<2xf64>) -> tensor<2xf64>
        scf.yield %1 : tensor<2xf64>
      }
      %s = graph.mul %r, %r : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
      func.return %s : tensor<2xf64>
    }""",
}


def arguments(model: ImportedModel, rng: np.random.Generator) -> list[np.ndarray]:
    main = function_named(model.module, "main")
    assert main is not None
    types = [tensor_type(a) for a in main.body.block.args]
    return [
        np.asarray(rng.uniform(1, 2, t.get_shape())).astype(numpy_dtype(t.element_type))
        for t in types
    ]


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    """Both modes, and each of both again of what reverse mode makes: loops that stack and run back."""
    rng = np.random.default_rng(0)
    model = parsed(LOOPS[name])
    arrays = arguments(model, rng)
    check_derivatives(model, arrays, rng)
    back = derived(model, Differentiation("reverse", moving(arrays), (0,), value=False))
    check_derivatives(back, [*arrays, rng.standard_normal(arrays[0].shape)], rng)


SMOOTH_ENOUGH = 24


@pytest.mark.parametrize("seed", range(SMOOTH_ENOUGH))
def test_random_programs_forward_against_reverse(seed: int) -> None:
    """The transpose of what forward mode computes, of programs with kinks and steps too."""
    program = RandomGraph(seed, 10, False)
    model = program.model()
    arrays = program.inputs(1)
    wanted = ran(model, arrays)
    wrt, of = moving(arrays), moving(wanted)
    rng = np.random.default_rng(seed)
    t = [rng.standard_normal(arrays[n].shape).astype(np.float32) for n in wrt]
    ct = [rng.standard_normal(wanted[n].shape).astype(np.float32) for n in of]
    forward = Differentiation("forward", wrt, of, value=False)
    reverse = Differentiation("reverse", wrt, of, value=False, allow_unused=True)
    pushed = ran(derived(model, forward), [*arrays, *t])
    pulled = ran(derived(model, reverse), [*arrays, *ct])
    left = [a.astype(np.float64) * b for a, b in zip(ct, pushed, strict=True)]
    right = [a.astype(np.float64) * b for a, b in zip(t, pulled, strict=True)]
    if not all(np.isfinite(a).all() for a in (*left, *right)):
        pytest.skip("a derivative is infinite there")
    size = sum(np.abs(a).sum() for a in (*left, *right)) + 1
    assert abs(sum(a.sum() for a in left) - sum(a.sum() for a in right)) <= 1e-4 * size


def returning(arguments: str, *returned: str) -> str:
    """A function that returns some of its arguments."""
    kinds = dict(part.split(": ") for part in arguments.split(", "))
    types = ", ".join(kinds[r] for r in returned)
    head = f"func.func @main({arguments}) -> ({types}) {{"
    return f"{head}\nfunc.return {', '.join(returned)} : {types}\n}}"


ONE = returning("%x: tensor<f32>", "%x")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "is no scalar": ({}, returning("%x: tensor<2xf32>", "%x")),
    "only floats have a gradient": (
        {"with_respect_to": ("k",)},
        returning("%x: tensor<f32>, %k: tensor<i64>", "%x"),
    ),
    "reaches an argument": (
        {"with_respect_to": ("w",)},
        returning("%x: tensor<f32>, %w: tensor<f32>", "%x"),
    ),
    "extents must be known": ({}, returning("%x: tensor<?xf32>", "%x")),
    "nothing has this name": ({"with_respect_to": ("z",)}, ONE),
    "expected reverse, forward, gradient": ({"mode": "sideways"}, ONE),
    "there is no function '@other'": ({"function": "other"}, ONE),
    "there is a function '@main' already": ({"into": "main"}, ONE),
    "got 2: say which": ({}, returning("%x: tensor<f32>", "%x", "%x")),
}


def asked(options: dict[str, Any]) -> Differentiate:
    given: dict[str, Any] = {"mode": "gradient", **options}
    return Differentiate(**given)


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    options, text = REFUSED[message]
    model = parsed(text)
    before = str(model.module)
    ctx = IrkitContext(weights=model.weights)
    with pytest.raises(UnsupportedError, match=message):
        asked(options).apply(ctx, model.module)
    assert str(model.module) == before


def test_integers_between_end_the_way() -> None:
    """What goes through an integer has no gradient, and what does not still has."""
    model = parsed("""func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
      %i = graph.cast %x {to = i64} : (tensor<2xf64>) -> tensor<2xi64>
      %f = graph.cast %i {to = f64} : (tensor<2xi64>) -> tensor<2xf64>
      %y = graph.mul %x, %f : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
      func.return %y : tensor<2xf64>
    }""")
    assert gradients(model, [2.5, -1.5]) == [[2.0, -1.0]]
