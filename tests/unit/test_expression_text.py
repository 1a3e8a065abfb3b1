"""Functions of the tensor level as tensor expressions, which read back compute the same."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
import pytest
from semantics_cases import cases
from test_tensor_ops import OPS
from xdsl.dialects.func import ReturnOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.constants import constant_array
from irkit.dialects.functions import function_named
from irkit.dialects.graph.semantics.expression import evaluate_step
from irkit.dialects.tensor_ops import registry
from irkit.dialects.types import numpy_dtype, tensor_of, tensor_type
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.expressions.binding import bind, program_of
from irkit.frontends.module import GraphBuilder
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.lower.tensor_to_expression import NOT_EXPRESSIBLE, Printed
from irkit.model_info import ModelInfo
from irkit.passes.graph.unroll_recurrence import UnrollRecurrence
from irkit.weights import WeightStore

FORMS = {
    *(
        "linalg.fill",
        "linalg.generic",
        "te.argmax",
        "te.attention",
        "te.gather",
        "te.gather_elements",
    ),
    *(
        "te.layer_norm",
        "te.softmax",
        "te.top_k",
        "tensor.collapse_shape",
        "tensor.concat",
        "tensor.expand_shape",
    ),
    *("tensor.extract_slice", "tensor.pad", "te.scatter_add"),
    *("te.attention_key_gradient", "te.attention_query_gradient"),
}
REFUSED = {
    # Remainders of floats, bits and powers of whole numbers, what is rounded once.
    *("arith.remf", "arith.remui", "math.fma"),
    *("arith.andi", "arith.ori", "arith.xori", "arith.cmpi", "math.ipowi"),
    *(op.name for op in NOT_EXPRESSIBLE),
}
OTHERS = {
    "tensor.cast": """
      func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
        %0 = tensor.cast %a : tensor<2x3xf32> to tensor<2x3xf32>
        func.return %0 : tensor<2x3xf32> }""",
    "tensor.insert_slice": """
      func.func @main(%a: tensor<2x2xf32>, %b: tensor<5x4xf32>) -> tensor<5x4xf32> {
        %0 = tensor.insert_slice %a into %b[1, 1] [2, 2] [2, 1] : tensor<2x2xf32> into tensor<5x4xf32>
        func.return %0 : tensor<5x4xf32> }""",
    "tensor.splat": """
      func.func @main(%a: tensor<2xi64>) -> tensor<2x3xi64> {
        %c = arith.constant 7 : i64
        %0 = tensor.splat %c : tensor<2x3xi64>
        func.return %0 : tensor<2x3xi64> }""",
}
"""Ops that stand in no case of those of `test_tensor_ops`."""


def lowered(case):
    b = GraphBuilder([(f"x{n}", tensor_of(a)) for n, a in enumerate(case.arrays)])
    outputs = b.ops(case.op, *b.inputs, **case.props)
    info = ModelInfo("network", b.names, tuple(f"y{n}" for n in range(len(outputs))))
    model = b.finish([(f"y{n}", v) for n, v in enumerate(outputs)], info)
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    UnrollRecurrence().apply(ctx, model.module)
    ConvertGraphToTensor().apply(ctx, model.module)
    return model


def read_back(printed, arrays, weights):
    """What the text computes."""
    known = {f"T{n}": a for n, a in enumerate(arrays)}
    known |= {name: constant_array(v, weights) for name, v in printed.constants.items()}
    if printed.text:
        program = program_of(printed.text)
        given = [known[p.name] for p in program.parameters]
        steps, _ = bind(program, [a.shape for a in given], [a.dtype for a in given])
        with np.errstate(all="ignore"):
            for step in steps:
                operands = {name: known[name] for name in step.operands}
                known[step.statement.target] = evaluate_step(step, operands)
    return [known[name] for name in printed.results]


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_what_is_printed_reads_back_as_the_same_values(dtype):
    tried, refused = set(), set()
    for case in cases(np.dtype(dtype)):
        model = lowered(case)
        main = function_named(model.module, "main")
        try:
            printed = Printed(main, model.weights)
        except UnsupportedError as error:
            refused.add(str(error).partition("'")[2].partition("'")[0])
            continue
        tried |= {op.name for op in main.walk()}
        got = read_back(printed, case.arrays, model.weights)
        want = run_tensor(model.module, model.weights, list(case.arrays))
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype, (case.name, printed.text)
            np.testing.assert_allclose(
                g, w, rtol=1e-4, atol=1e-4, err_msg=f"{case.name}\n{printed.text}"
            )
    assert dtype != "float32" or tried >= FORMS, FORMS - tried
    assert refused <= REFUSED, refused - REFUSED


def function_of(text, name):
    """The function of a case, which returns what its last op gives."""
    module = irkit.parse(text, name)
    main = function_named(module, "main")
    end = main.body.block.last_op
    if not end.operands:
        end.operands = list(end.prev_op.results)
        main.update_function_type()
    return module, main


def given(value, rng):
    """A random array; whole numbers are few, some of them no index."""
    dtype = numpy_dtype(tensor_type(value).element_type)
    shape = tensor_type(value).get_shape()
    found = rng.random(shape) if dtype.kind == "f" else rng.integers(0, 3, shape)
    return found.astype(dtype)


@pytest.mark.parametrize("name", [*OPS, *OTHERS])
def test_every_op_is_printed_or_has_a_reason(name):
    module, main = function_of({**OPS, **OTHERS}[name], name)
    weights = WeightStore()
    if any(type(op) in NOT_EXPRESSIBLE for op in main.body.block.ops):
        with pytest.raises(UnsupportedError, match=r"' as a tensor expression: "):
            Printed(main, weights)
        return
    printed = Printed(main, weights)
    end = main.body.block.last_op
    assert isinstance(end, ReturnOp)
    for seed in range(3):
        arrays = [given(v, np.random.default_rng(seed)) for v in main.body.block.args]
        got = read_back(printed, arrays, weights)
        want = run_tensor(module, weights, arrays)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6, err_msg=printed.text)


def test_every_registered_op_is_in_a_case_or_in_the_list():
    every = {op: op.name for op in registry._MODELS}
    tried = set()
    for name, text in {**OPS, **OTHERS}.items():
        _, main = function_of(text, name)
        tried |= {type(op) for op in main.body.block.ops}
    missing = set(every) - tried - set(NOT_EXPRESSIBLE)
    assert not missing, sorted(every[op] for op in missing)
