"""A recurrence that is written out step by step: its weights stay, and little is waited for."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from benchmarks.models.onnx_model import OnnxModel
from irkit.context import IrkitContext
from irkit.dialects.task import AppendOp, ProgramOp, ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.onnx import import_onnx
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels.binding.read_ahead import read_ahead

CELLS = ("recurrent_cell", "cell_rows")
"""Families of the rKernels of cells."""


def written_out(steps: int, units: int, rows: int = 1) -> ModelProto:
    """x[steps, rows, units] → the last h of h = tanh(x W + h U) * c, c = sigmoid(h V) + c."""
    m = OnnxModel("cell", 0)
    w, u, v = (m.weight(name, units, units) for name in "WUV")
    h = c = m.array("zero", np.zeros((rows, units), np.float32))
    for step in range(steps):
        x = m.then("Gather", "x", m.array(f"at{step}", np.array(step)), axis=0)
        gate, new = m.then("MatMul", h, v), m.then("MatMul", h, u)
        c = m.then("Add", m.then("Sigmoid", gate), c)
        total = m.then("Add", m.then("MatMul", x, w), new)
        h = m.then("Mul", m.then("Tanh", total), c)
    m.node("Identity", [h], "y")
    return m.finish({"x": [steps, rows, units]}, {"y": [rows, units]})


def scheduled(model: ModelProto, device: str = "h200") -> tuple[ModuleOp, IrkitContext]:
    imported = import_onnx(model)
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(context, imported.module, level, device)
    return imported.module, context


def cells_of(module: ModuleOp) -> list[AppendOp]:
    """The appends of rOperators that read the state's weights, in order."""
    (program,) = (op for op in module.ops if isinstance(op, ProgramOp))
    kernels = {
        op.sym_name.data: op.rkernel.data
        for op in module.ops
        if isinstance(op, ROperatorOp) and op.rkernel is not None
    }
    appends = [op for op in program.body.block.ops if isinstance(op, AppendOp)]
    return [a for a in appends if kernels[a.callee.string_value()].startswith(CELLS)]


def test_weights_that_each_step_puts_side_by_side_stay_in_shared_memory() -> None:
    module, _ = scheduled(written_out(6, 256))
    cells = cells_of(module)
    assert len(cells) >= 4
    assert all(a.resident_pairs for a in cells)
    assert len({pair for a in cells for pair in a.resident_pairs}) == 1


def test_an_epilogue_reads_before_the_sums_what_does_not_hang_on_them() -> None:
    module, context = scheduled(written_out(4, 64))
    text = emit_module(module, context.weights)
    name = cells_of(module)[0].callee.string_value()
    fetched = text[text.index(f"def {name}_fetch(") :].partition("\n\n")[0]
    store = text[text.index(f"def {name}_store(") :].partition("\n\n")[0]
    assert fetched.count("= p") >= 2
    assert "= p" not in store


def test_what_is_read_ahead() -> None:
    lines = [
        "v0 = u * 2",
        "v1 = p0[v0 + b]",
        "v2 = v1 + acc[0]",
        "v3 = p1[v2]",
        "if v2 > v3:",
        "    v4 = p0[u]",
        "v5 = p2[u]",
        "v6 = p0[acc[1]]",
        "p3[v0] = v6",
    ]
    found = read_ahead(lines, {"p0", "p1"})
    assert found.before == ["v0 = u * 2", "v1 = p0[v0 + b]"]
    assert (found.names, found.pointers) == (["v1"], ["p0"])
    # Indices stay where they are needed again; what hangs on a sum, or is no operand, is read where it was.
    assert found.after == [line for line in lines if not line.startswith("v1")]
