"""Functions of the tensor level as tensor expressions, which read back compute the same."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
import pytest
from semantics_cases import cases

from irkit.context import IrkitContext
from irkit.dialects.constants import constant_array
from irkit.dialects.functions import function_named
from irkit.dialects.graph.semantics.expression import evaluate_step
from irkit.dialects.types import tensor_of
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.expressions.binding import bind, program_of
from irkit.frontends.module import GraphBuilder
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.lower.tensor_to_expression import Printed
from irkit.model_info import ModelInfo
from irkit.passes.graph.unroll_recurrence import UnrollRecurrence

FORMS = {
    *(
        "linalg.fill",
        "linalg.generic",
        "te.argmax",
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
    *("tensor.extract_slice", "tensor.pad"),
}
REFUSED = {
    # Empty tensors; remainders of floats; bits and powers of whole numbers; attention and its gradients,
    # forests, CSR rows;
    # what is added where indices say, or rounded once.
    *("tensor.empty", "arith.remf", "arith.remui", "math.fma", "te.attention", "te.forest"),
    *("te.attention_key_gradient", "te.attention_query_gradient"),
    *("te.csr_dense", "te.csr_matmul", "te.csr_reduce", "te.scatter_add"),
    *("arith.andi", "arith.ori", "arith.xori", "arith.cmpi", "math.ipowi"),
}


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
