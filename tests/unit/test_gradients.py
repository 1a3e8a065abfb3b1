"""Rules of differentiation: against central differences in float64, and forward against reverse mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_cases import CASES, Case

from irkit.dialects import graph
from irkit.dialects.functions import function_named
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients import GRADIENTS, NOT_DIFFERENTIABLE, Rule
from irkit.dialects.types import tensor_of
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.passes.graph.differentiation import Differentiation, differentiated

STEP = 1e-6


def built(case: Case) -> ImportedModel:
    """The op as a function of all its arrays."""
    names = [f"x{n}" for n in range(len(case.arrays))]
    b = GraphBuilder([(n, tensor_of(a)) for n, a in zip(names, case.arrays, strict=True)])
    outputs = b.ops(case.op, *b.inputs, **case.props)
    info = ModelInfo("network", b.names, tuple(f"y{n}" for n in range(len(outputs))))
    return b.finish([(f"y{n}", v) for n, v in enumerate(outputs)], info)


def derived(model: ImportedModel, ask: Differentiation) -> ImportedModel:
    """Another module, of the derivative."""
    main = function_named(model.module, "main")
    assert main is not None
    made = differentiated(main, ask, model.weights)
    module = model.module.clone()
    other = function_named(module, "main")
    assert other is not None
    other.detach()
    other.erase()
    module.body.block.add_op(made)
    module.verify()
    return ImportedModel(module, model.weights, model.info)


def ran(model: ImportedModel, arrays: Any) -> list[np.ndarray]:
    """Its results on arrays."""
    return run_graph(model.module, model.weights, [np.asarray(a) for a in arrays])


def moving(arrays: Any) -> tuple[int, ...]:
    """Numbers of those of floats."""
    return tuple(n for n, a in enumerate(arrays) if np.asarray(a).dtype.kind == "f")


def directional(model: ImportedModel, arrays: Any, along: Any, of: Any) -> list[np.ndarray]:
    """How results `of` change when the arrays of floats move along a direction, by central differences."""
    ends: list[list[np.ndarray]] = []
    for sign in (1, -1):
        moved = list(arrays)
        for n, t in zip(moving(arrays), along, strict=True):
            moved[n] = moved[n] + sign * STEP * t
        ends.append(ran(model, moved))
    return [(ends[0][n] - ends[1][n]) / (2 * STEP) for n in of]


def drawn(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    """A direction."""
    direction: np.ndarray = np.empty(like.shape)
    direction[...] = rng.standard_normal(like.shape)
    return direction


def dot(a: Any, b: Any) -> float:
    return float(sum((x * y).sum() for x, y in zip(a, b, strict=True)))


def check_derivatives(model: ImportedModel, arrays: Any, rng: np.random.Generator) -> None:
    """Forward mode against central differences, and reverse against forward mode."""
    wanted = ran(model, arrays)
    wrt, of = moving(arrays), moving(wanted)
    t = [drawn(rng, arrays[n]) for n in wrt]
    ct = [drawn(rng, wanted[n]) for n in of]
    forward = derived(model, Differentiation("forward", wrt, of))
    reverse = derived(model, Differentiation("reverse", wrt, of, allow_unused=True))
    pushed, pulled = ran(forward, [*arrays, *t]), ran(reverse, [*arrays, *ct])
    for got in (pushed, pulled):
        for g, w in zip(got, wanted, strict=False):
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
    pushed, pulled = pushed[len(wanted) :], pulled[len(wanted) :]
    differences = directional(model, arrays, t, of)
    scale = max([1.0, *(np.abs(d).max(initial=0) for d in differences)])
    for got, want in zip(pushed, differences, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * scale)
    size = sum(np.abs(a * b).sum() for a, b in zip(ct, pushed, strict=True)) + 1
    assert abs(dot(ct, pushed) - dot(pulled, t)) <= 1e-11 * size


def test_every_op_has_a_rule_or_a_reason() -> None:
    ops = {op for op in graph.Graph.operations if issubclass(op, GraphOp)}
    assert {*GRADIENTS} | {*NOT_DIFFERENTIABLE} == ops
    assert not {*GRADIENTS} & {*NOT_DIFFERENTIABLE}
    assert all(isinstance(rule, Rule) for rule in GRADIENTS.values())
    assert all(NOT_DIFFERENTIABLE.values())


def test_every_rule_has_a_case() -> None:
    rng = np.random.default_rng(0)
    assert {make(rng).op for make in CASES.values()} == {*GRADIENTS}


@pytest.mark.parametrize("name", CASES)
def test_rules_agree_with_differences(name: str) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        case = CASES[name](rng)
        check_derivatives(built(case), case.arrays, rng)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_derivatives(name: str) -> None:
    """What reverse mode makes is differentiated again, in both modes."""
    rng = np.random.default_rng(3)
    case = CASES[name](rng)
    model = built(case)
    results = ran(model, case.arrays)
    of = moving(results)
    ask = Differentiation("reverse", moving(case.arrays), of, value=False, allow_unused=True)
    arrays = [*case.arrays, *(rng.standard_normal(results[n].shape) for n in of)]
    check_derivatives(derived(model, ask), arrays, rng)
