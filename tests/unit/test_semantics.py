"""Each graph op means the same at every level and compiled, on every element type that it takes.

IRKIT_SEMANTICS=all compiles every case instead of a sample (half an hour).
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from semantics_cases import DTYPES, admitted, cases, sampled

from irkit.context import IrkitContext
from irkit.dialects.types import tensor_of
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp import run_module
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.passes.graph.unroll_recurrence import UnrollRecurrence
from irkit.passes.task.form_roperators import FormROperators
from irkit.runtime.program import Variant

LEVELS = ("graph", "tensor")
ALL = os.environ.get("IRKIT_SEMANTICS") == "all"


class Program:
    """One module with the results of all cases."""

    def __init__(self, some):
        distinct = {}
        for case in some:
            for number, array in enumerate(case.arrays):
                if number not in case.constants:
                    distinct.setdefault(key(array), array)
        if not distinct:
            distinct["none"] = np.zeros(1, np.float32)
        self.inputs = list(distinct.values())
        b = GraphBuilder([(f"x{i}", tensor_of(x)) for i, x in enumerate(self.inputs)])
        known = dict(zip(distinct, b.inputs, strict=True))
        outputs, self.cases = [], []
        for case in some:
            operands = [
                b.constant(a) if number in case.constants else known[key(a)]
                for number, a in enumerate(case.arrays)
            ]
            for result in b.ops(case.op, *operands, **case.props):
                outputs.append((f"y{len(outputs)}", result))
                self.cases.append(case)
        info = ModelInfo("network", b.names, tuple(name for name, _ in outputs))
        self.model = b.finish(outputs, info)

    def run(self):
        return run_module(self.model.module, self.model.weights, self.inputs)

    def context(self):
        ctx = IrkitContext(weights=self.model.weights)
        register_dialects(ctx)
        return ctx

    def check(self, got, want, level):
        wrong = []
        for case, g, w in zip(self.cases, got, want, strict=True):
            try:
                case.check(g, w)
            except AssertionError as error:
                wrong.append(f"{level}: {case.name}: {error}")
        assert not wrong, f"{len(wrong)} of {len(self.cases)} cases\n" + "\n".join(wrong[:5])


def key(array):
    return (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_levels_agree(dtype):
    program = Program(cases(dtype))
    want = program.run()
    for level in LEVELS:
        run_level(program.context(), program.model.module, level, "cpu4")
        program.check(program.run(), want, level)
    FormROperators().apply(program.context(), program.model.module)
    program.model.module.verify()
    program.check(program.run(), want, "task")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_lowering_alone_agrees(dtype):
    """No fold between the two levels; then the tensor level's own folds and fusion."""
    program = Program(cases(dtype))
    want = program.run()
    ctx = program.context()
    UnrollRecurrence().apply(ctx, program.model.module)
    ConvertGraphToTensor().apply(ctx, program.model.module)
    program.model.module.verify()
    program.check(program.run(), want, "lowered")
    run_level(ctx, program.model.module, "tensor", "cpu4")
    program.check(program.run(), want, "tensor")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_compiled_programs_agree(dtype, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    parts = 24
    for share in range(parts) if ALL else (0,):
        program = Program(sampled(dtype, share, parts))
        want = program.run()
        artifact = build_artifact(program.model, "cpu", cache=False)
        program.check(Variant(artifact, "serial").run(program.inputs), want, "compiled")


def test_all_types_are_tried():
    assert admitted() == list(DTYPES)
