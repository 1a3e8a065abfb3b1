"""Rows of CSR matrices on a GPU: the emitted kernels, run by an emulator: scikit-learn's answers."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_loops import Emulated, register_gpu4
from family_programs import cases
from scipy import sparse
from sklearn import linear_model, naive_bayes, pipeline, preprocessing
from test_legality import compute, set_needs, set_parameters, small
from xdsl.dialects.builtin import StringAttr

from irkit.context import IrkitContext
from irkit.driver.compiler.csr import csr_model
from irkit.driver.pipelines.lowering import bring_to_level
from irkit.driver.registry import register_dialects
from irkit.frontends import import_model
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels import registry
from irkit.rkernels.legality import why_illegal
from irkit.runtime.csr_rows import CsrPrograms
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant
from tests.conformance.interpreted import Interpreted, same

WIDTH = 90
MODELS: dict[str, Any] = {
    "three classes": lambda: linear_model.LogisticRegression(max_iter=20),
    "two classes": lambda: pipeline.make_pipeline(
        preprocessing.Normalizer(), linear_model.LogisticRegression(max_iter=20)
    ),
    "counts": lambda: pipeline.make_pipeline(
        preprocessing.Normalizer("max"), naive_bayes.MultinomialNB()
    ),
    "ridge": linear_model.Ridge,
}


@pytest.mark.parametrize("variant", ["thread", "warp"])
@pytest.mark.parametrize("name", ["csr", "csr of one column", "csr sums", "csr maxima"])
def test_each_rkernel(name: str, variant: str) -> None:
    (case,) = cases(name, "h200")
    family = "csr" if name in ("csr", "csr of one column") else "csr_reduce"
    rkernel = registry.find("cuda", f"{family}.{variant}")
    case.op.rkernel = StringAttr(rkernel.name)
    set_parameters(case.op, {})
    set_needs(case.op, rkernel)
    reason = why_illegal(case.op, small("h200", 64))
    if (name, variant) == ("csr", "warp"):
        assert reason == "rKernel 'csr.warp' does not take this root"
        return
    assert reason is None
    compute(case, small("h200", 64))


def rows(seed: int) -> Any:
    """Rows with nothing, with little, and with more than a warp has lanes, in no order of columns."""
    generator = np.random.default_rng(seed)
    counts = np.array([3, 0, 70, 31, 33, 1, 90, 0])
    columns = [generator.permutation(WIDTH)[:n] for n in counts]
    data = np.ceil(8 * generator.random(counts.sum())) / 8
    ends = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((data, np.concatenate(columns), ends), shape=(len(counts), WIDTH))


class OneModule:
    """What `CsrRows` asks of a variant, of an emulated program."""

    def __init__(self, run: Emulated, info: Any) -> None:
        self.executor, self.info, self.outputs = run.executor, info, run.executor.program.outputs

    def checked(self, outputs: list[Any]) -> list[Any]:
        return outputs


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("name", MODELS)
def test_programs(monkeypatch: pytest.MonkeyPatch, name: str, mode: str) -> None:
    register_gpu4(monkeypatch)
    training: Any = sparse.vstack([rows(n) for n in range(4)], "csr")
    classes = 2 if name == "two classes" else 3
    model = MODELS[name]().fit(training, np.arange(training.shape[0]) % classes)
    imported = csr_model(import_model(model, "float64"))
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    bring_to_level(ctx, imported.module, "schedule", "gpu4")
    text = str(imported.module)
    assert 'rkernel = "csr' in text
    run = Emulated(monkeypatch, emit_module(imported.module, ctx.weights), ctx.weights, mode, 3)
    variant: Variant = OneModule(run, imported.info)  # pyright: ignore
    dense = Interpreted(import_model(model, "float64"))
    program = CompiledProgram({"float64": dense}, csr=CsrPrograms({"float64": variant}))
    for x in (rows(9), rows(10)[2:5], rows(11)[1:2]):
        for method in program.methods:
            found, want = getattr(program, method)(x), getattr(model, method)(x)
            same(found, want, 1e-12, 1e-14)
