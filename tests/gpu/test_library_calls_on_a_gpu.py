"""cuBLASLt in mode `per-op` on a GPU: the same answers; own kernels where it is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.driver.measuring import measure_library_calls
from irkit.errors import DeviceError
from irkit.runtime.cuda import library_calls
from irkit.runtime.cuda.availability import why_not
from irkit.runtime.cuda.memory import Pool
from irkit.schedule.library_call import LibraryCall
from tests.unit.test_library_calls import text

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
pytest.importorskip("nvmath.bindings.cublasLt")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is held for faster than anything."""
    monkeypatch.setattr(measure_library_calls, "_took", lambda _: 1.0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("rows", [(64,), (3, 40)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("precision", ["float32", "ieee", "bf16"])
def test_a_product_by_the_library(
    rows: tuple[int, ...], bias: bool, addend: bool, precision: str
) -> None:
    source = text(rows, 96, 80, bias=bias, addend=addend, precision=precision)
    program = irkit.compile(irkit.parse(source), target="cuda", measure=True, cache=False)
    (facts,) = program.report()["roperators"].values()
    assert facts["library"] == "cublaslt"
    executor: Any = program._first.executor
    rng = np.random.default_rng()
    for mode in ("per-op", "per-op", "persistent"):
        executor.mode = mode
        shapes = [(*rows, 96), (96, 80), (80,), (*rows, 80)]
        x, w, b, r = (rng.standard_normal(s).astype(np.float32) for s in shapes)
        want = x.astype(np.float64) @ w + bias * b + addend * r
        (got,) = program.run([x, w, b, r])
        limit = 1e-2 if precision == "bf16" else 2e-6
        assert np.linalg.norm(got - want) <= limit * np.linalg.norm(want)
    assert "not_called" not in program.report()
    assert executor.libraries.plans


@pytest.mark.usefixtures("always")
def test_own_kernels_run_where_the_library_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise DeviceError("cublaslt does not load: no such file")

    source = text((64,), 96, 80, transposed=True)
    program = irkit.compile(irkit.parse(source), target="cuda", measure=True, cache=False)
    executor: Any = program._first.executor
    monkeypatch.setattr(executor.libraries, "_libraries", {"cublaslt": broken})
    executor.mode = "per-op"
    rng = np.random.default_rng()
    shapes = [(64, 96), (80, 96), (80,), (64, 80)]
    x, w, b, r = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    np.testing.assert_allclose(program.run([x, w, b, r])[0], x @ w.T + b, rtol=1e-3, atol=1e-4)
    assert program.report()["not_called"] == ["cublaslt does not load: no such file"]


@pytest.mark.parametrize("seed", range(12))
def test_calls_of_random_shapes(seed: int) -> None:
    from irkit.runtime.cuda.cublaslt import cublaslt
    from irkit.runtime.cuda.driver import call as driver_call
    from irkit.runtime.cuda.driver import device

    rng = np.random.default_rng(seed)
    m, n, k = (int(v) for v in rng.integers(1, 40, 3) * 4)
    transposed, bias, addend = (bool(v) for v in rng.integers(0, 2, 3))
    call = LibraryCall(
        "cublaslt", m, n, k, transposed, "float32", "float32", "float32", 0, 1, 4,
        2 if bias else -1, 3 if addend else -1,
    )  # fmt: skip
    device().activate()
    pool = Pool(device())
    plan = cublaslt().plan(call)
    shapes = [(m, k), (n, k) if transposed else (k, n), (n,), (m, n), (m, n)]
    values = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    buffers = [pool.take(v.nbytes) for v in values]
    for buffer, value in zip(buffers, values, strict=True):
        buffer.upload(value, pool.stream.handle)
    workspace = pool.take(plan.workspace_bytes)
    plan.launch([b.address for b in buffers], workspace.address, int(pool.stream.handle))
    driver_call("cuStreamSynchronize", pool.stream.handle)
    got = np.empty((m, n), np.float32)
    driver_call("cuMemcpyDtoH", got.ctypes.data, buffers[4].address, got.nbytes)
    x, w, b, r, _ = (v.astype(np.float64) for v in values)
    want = x @ (w.T if transposed else w) + bias * b + addend * r
    assert np.linalg.norm(got - want) <= 2e-6 * np.linalg.norm(want)
    assert library_calls.call_ns(call) > 0
