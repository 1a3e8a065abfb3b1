"""Rows of CSR matrices on a GPU: the emitted kernels, run by an emulator: scikit-learn's answers."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from emulated_loops import Emulated, register_gpu4
from family_programs import cases
from scipy import sparse
from sklearn import ensemble, linear_model, naive_bayes, pipeline, preprocessing
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
from irkit.runtime import csr_rows
from irkit.runtime.csr_rows import CsrPrograms
from irkit.runtime.program import CompiledProgram
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


def test_dense_rows() -> None:
    (case,) = cases("csr dense", "h200")
    case.op.rkernel = StringAttr("csr_dense.warp")
    set_parameters(case.op, {})
    set_needs(case.op, registry.find("cuda", "csr_dense.warp"))
    assert why_illegal(case.op, small("h200", 64)) is None
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


def narrow(x: Any) -> Any:
    """A copy with the indices that scikit-learn's trees take."""
    data = (x.data.copy(), x.indices.astype(np.int32), x.indptr.astype(np.int32))
    return sparse.csr_matrix(data, shape=x.shape)


def emulated(monkeypatch: pytest.MonkeyPatch, imported: Any, kind: str, mode: str) -> Any:
    """A program of stored elements, which has a root of that kind."""
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    bring_to_level(ctx, imported.module, "schedule", "gpu4")
    assert f'rkernel = "{kind}' in str(imported.module)
    run = Emulated(monkeypatch, emit_module(imported.module, ctx.weights), ctx.weights, mode, 3)
    return OneModule(run, imported.info)


TREES: dict[str, Any] = {
    "forest": lambda: ensemble.RandomForestClassifier(4, max_depth=3, random_state=0),
    "lightgbm": lambda: lightgbm.LGBMClassifier(
        n_estimators=3, num_leaves=4, verbose=-1, min_child_samples=2
    ),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=3, max_depth=2),
    "behind a scaler": lambda: pipeline.make_pipeline(
        preprocessing.MaxAbsScaler(), ensemble.ExtraTreesClassifier(4, max_depth=3, random_state=0)
    ),
}


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("name", TREES)
def test_trees(monkeypatch: pytest.MonkeyPatch, name: str, chunk: int) -> None:
    """Rows are made dense by the program, so many at a time; what XGBoost does not have is missing."""
    register_gpu4(monkeypatch)
    training: Any = sparse.vstack([rows(n) for n in range(4)], "csr")
    model = TREES[name]().fit(narrow(training), np.arange(training.shape[0]) % 3)
    variant = emulated(
        monkeypatch, csr_model(import_model(model, "float64"), True), "csr_dense", "per-op"
    )
    size = 4 if name in ("forest", "xgboost") else 8
    monkeypatch.setattr(csr_rows, "DENSE_BYTES", chunk * WIDTH * size)
    dense = Interpreted(import_model(model, "float64"))
    stored = CsrPrograms({"float64": variant})
    program = CompiledProgram({"float64": dense}, csr=stored)
    twice = sparse.csr_array(([1.0, 0.5, 2.0], [3, 3, 1], [0, 0, 3]), shape=(2, WIDTH))
    for each in (rows(9), rows(10)[1:2], twice):
        x = each.astype(np.float32 if size == 4 else np.float64)
        for method in ("predict", "predict_proba"):
            found, want = getattr(program, method)(x), getattr(model, method)(narrow(x))
            same(found, want, 1e-6 if name == "xgboost" else 1e-12, 1e-14)
    assert stored.report()["sparse_rows"] == "made dense by the program, some at a time"


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("name", MODELS)
def test_programs(monkeypatch: pytest.MonkeyPatch, name: str, mode: str) -> None:
    register_gpu4(monkeypatch)
    training: Any = sparse.vstack([rows(n) for n in range(4)], "csr")
    classes = 2 if name == "two classes" else 3
    model = MODELS[name]().fit(training, np.arange(training.shape[0]) % classes)
    variant = emulated(monkeypatch, csr_model(import_model(model, "float64")), "csr", mode)
    dense = Interpreted(import_model(model, "float64"))
    program = CompiledProgram({"float64": dense}, csr=CsrPrograms({"float64": variant}))
    for x in (rows(9), rows(10)[2:5], rows(11)[1:2]):
        for method in program.methods:
            found, want = getattr(program, method)(x), getattr(model, method)(x)
            same(found, want, 1e-12, 1e-14)
