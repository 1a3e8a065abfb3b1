"""Library calls: which rOperators are one, what the binding asks for, and who runs instead."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.driver.measuring import measure_library_calls
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import level_pipeline
from irkit.driver.registry import all_passes
from irkit.errors import DeviceError
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels.legality import root_of, why_illegal
from irkit.rkernels.library_calls import library_call
from irkit.runtime.cuda import cublaslt, library_calls
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule.devices import device
from irkit.schedule.library_call import NONE, LibraryCall
from irkit.schedule.tables import Appended, Operand


def text(
    rows: tuple[int, ...], k: int, n: int, *, transposed: bool = False, bias: bool = False,
    addend: bool = False, more: str = "", precision: str = "float32",
) -> str:  # fmt: skip
    """A product of x and w, at the graph level."""
    x, w = "x".join(map(str, (*rows, k))), f"{n}x{k}" if transposed else f"{k}x{n}"
    y = "tensor<" + "x".join(map(str, (*rows, n))) + "xf32>"
    arguments = f"%x: tensor<{x}xf32>, %w: tensor<{w}xf32>, %b: tensor<{n}xf32>, %r: {y}"
    lines = [f"%y0 = graph.matmul %x, %w : (tensor<{x}xf32>, tensor<{w}xf32>) -> {y}"]
    if transposed:
        how = "{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}"
        given = "(tensor<" + x + "xf32>, tensor<" + w + f"xf32>, tensor<{n}xf32>)"
        lines = [f"%y0 = graph.gemm %x, %w, %b {how} : {given} -> {y}"]
    elif bias:
        lines.append(f"%y1 = graph.add %y0, %b : ({y}, tensor<{n}xf32>) -> {y}")
    if addend:
        lines.append(f"%y{len(lines)} = graph.add %y{len(lines) - 1}, %r : ({y}, {y}) -> {y}")
    if more:
        lines.append(f"%y{len(lines)} = {more} %y{len(lines) - 1} : ({y}) -> {y}")
    body = "\n  ".join(lines)
    granted = f'attributes {{irkit.precision = "{precision}"}}'
    end = f"func.return %y{len(lines) - 1} : {y}"
    return f"func.func @main({arguments}) -> {y} {granted} {{\n  {body}\n  {end}\n}}\n"


def run(module: ModuleOp, passes: str) -> ModuleOp:
    PipelineRunner(IrkitContext()).run(module, build_pipeline(passes, all_passes()))
    return module


def formed(source: str, target: str = "h200") -> ModuleOp:
    """At the task level, with estimates for alternatives."""
    module = irkit.parse(source)
    for level in ("graph", "tensor", "task"):
        run(module, level_pipeline(level, target))
    return module


def roperators(module: ModuleOp) -> list[ROperatorOp]:
    return [op for op in module.ops if isinstance(op, ROperatorOp)]


def call_of(source: str) -> LibraryCall | None:
    (op,) = roperators(formed(source))
    return library_call(op, root_of(op))


@pytest.mark.parametrize(
    "asked",
    [
        {"more": "graph.relu"},
        {"more": "graph.exp"},
        {"precision": "tf32"},
    ],
)
def test_what_a_library_would_compute_less_exactly_or_not_is_no_call(asked: dict[str, Any]) -> None:
    assert call_of(text((64,), 32, 48)) is not None
    assert call_of(text((64,), 32, 48, **asked)) is None


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple),
    k=st.integers(2, 9),
    n=st.integers(2, 9),
    transposed=st.booleans(),
    bias=st.booleans(),
    addend=st.booleans(),
    precision=st.sampled_from(["float32", "ieee", "bf16"]),
)
def test_a_call_is_what_the_roperator_means(
    rows: tuple[int, ...],
    k: int,
    n: int,
    transposed: bool,
    bias: bool,
    addend: bool,
    precision: str,
) -> None:
    if transposed:
        rows = rows[:1]
    source = text(rows, k, n, transposed=transposed, bias=bias, addend=addend, precision=precision)
    module = formed(source)
    (op,) = roperators(module)
    call = library_call(op, root_of(op))
    assert call is not None
    assert (call.n, call.k, call.precision) == (n, k, precision)
    assert call.transposed is transposed
    rng = np.random.default_rng(k * n)
    shapes = [(*rows, k), (n, k) if transposed else (k, n), (n,), (*rows, n)]
    values = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    (want,) = run_module(irkit.parse(source), {}, values)
    launch = next(o for o in module.walk() if o.name == "task.launch")
    held = [np.ascontiguousarray(values[v.index]) for v in launch.operands]
    held.append(np.zeros((*rows, n), np.float32))
    stand_in().plan(call).launch([a.ctypes.data for a in held], 0, 7)
    tolerance = 2e-2 if precision == "bf16" else 1e-5
    np.testing.assert_allclose(held[-1], want, rtol=tolerance, atol=tolerance * 4)


# A stand-in for nvmath's bindings, which computes on the host.


def _array(address: int, kind: int, shape: tuple[int, int]) -> Any:
    """A column-major matrix at an address."""
    rows, columns = shape
    size = {0: ctypes.c_float, 2: ctypes.c_uint16}[kind]
    flat = np.ctypeslib.as_array((size * (rows * columns)).from_address(address))
    return flat.reshape(columns, rows).T


class HostApi:
    """cuBLASLt as its documentation describes it: matrices are column-major, the bias is along rows of D."""

    MatmulDescAttribute = types.SimpleNamespace(TRANSA=3, TRANSB=4, EPILOGUE=7, BIAS_POINTER=8)
    MatmulPreferenceAttribute = types.SimpleNamespace(
        MAX_WORKSPACE_BYTES=1, MIN_ALIGNMENT_A_BYTES=5, MIN_ALIGNMENT_B_BYTES=6,
        MIN_ALIGNMENT_C_BYTES=7, MIN_ALIGNMENT_D_BYTES=8,
    )  # fmt: skip
    Epilogue = types.SimpleNamespace(BIAS=4)

    def __init__(self, algorithms: int = 1) -> None:
        self.made: dict[int, Any] = {}
        self.algorithms, self.preferences = algorithms, dict[int, int]()
        self.streams: list[int] = []

    def _new(self, thing: Any) -> int:
        self.made[len(self.made) + 1] = thing
        return len(self.made)

    def get_version(self) -> int:
        return 130000

    def create(self) -> int:
        return self._new("handle")

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        assert scale == 0
        return self._new({"compute": compute})

    def matmul_desc_set_attribute(self, desc: int, attribute: int, held: int, size: int) -> None:
        kind = {4: ctypes.c_int32, 8: ctypes.c_int64}[size]
        self.made[desc][attribute] = kind.from_address(held).value

    def matrix_layout_create(self, kind: int, rows: int, columns: int, lead: int) -> int:
        assert lead == rows
        return self._new((kind, (rows, columns)))

    def matmul_preference_create(self) -> int:
        return self._new("preference")

    def matmul_preference_set_attribute(self, _: int, kind: int, held: int, size: int) -> None:
        number = ctypes.c_uint64 if size == 8 else ctypes.c_uint32
        self.preferences[kind] = number.from_address(held).value

    def _destroyed(self, *_: int) -> None:
        pass

    matmul_preference_destroy = matmul_desc_destroy = matrix_layout_destroy = _destroyed

    def MatmulHeuristicResult(self, count: int) -> Any:
        return types.SimpleNamespace(ptr=1, workspace_size=64)

    def matmul_algo_get_heuristic(self, *given: int) -> None:
        ctypes.c_int32.from_address(given[-1]).value = self.algorithms

    def matmul(
        self, handle: int, desc: int, alpha: int, a: int, of_a: int, b: int, of_b: int, beta: int,
        c: int, of_c: int, d: int, of_d: int, algorithm: int, workspace: int, size: int, stream: int,
    ) -> None:  # fmt: skip
        self.streams.append(stream)
        product = self.made[desc]
        left, right = _array(a, *self.made[of_a]), _array(b, *self.made[of_b])
        left = left.T if product.get(3) else left
        right = right.T if product.get(4) else right
        scale, add = (ctypes.c_float.from_address(v).value for v in (alpha, beta))
        total = scale * (left.astype(np.float64) @ right.astype(np.float64))
        if add:
            total += add * _array(c, *self.made[of_c])
        if product.get(7) == 4:
            total += _array(product[8], 0, (len(total), 1))
        _array(d, *self.made[of_d])[...] = total


def stand_in(api: HostApi | None = None) -> cublaslt.CublasLt:
    types_of = types.SimpleNamespace(
        COMPUTE_32F=68, COMPUTE_32F_PEDANTIC=69, COMPUTE_32F_FAST_16BF=75, COMPUTE_32F_FAST_16F=74
    )
    modules = {
        "nvmath.bindings.cublasLt": api or HostApi(),
        "nvmath.bindings.cublas": types.SimpleNamespace(ComputeType=types_of),
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cublaslt, "import_module", modules.__getitem__)
        return cublaslt.CublasLt()


CALL = LibraryCall("cublaslt", 4, 6, 5, False, "float32", "float32", "float32", 0, 1, 3, bias=2)


@pytest.mark.parametrize(("precision", "compute"), [("float32", 68), ("ieee", 69), ("bf16", 75)])
def test_the_library_is_asked_for_no_less_than_the_precision(precision: str, compute: int) -> None:
    api = HostApi()
    stand_in(api).plan(replace(CALL, precision=precision))
    assert {"compute": compute, 7: 4} in api.made.values()
    # Inputs of programs are at multiples of 16 bytes, and no more.
    assert [api.preferences[n] for n in (5, 6, 7, 8)] == [16] * 4


def test_a_library_that_is_not_installed_or_does_not_load_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(cublaslt, "import_module", absent)
    with pytest.raises(DeviceError, match=r"nvmath-python is not installed .*irkit\[library\]"):
        cublaslt.CublasLt()
    broken = HostApi()

    def refuse() -> int:
        raise RuntimeError("libcublasLt.so.13: cannot open shared object file")

    broken.create = refuse
    with pytest.raises(DeviceError, match="cublaslt does not load: libcublasLt"):
        stand_in(broken)
    with pytest.raises(DeviceError, match="no algorithm"):
        stand_in(HostApi(algorithms=0)).plan(CALL)


# In a program.


class Plan:
    workspace_bytes = 64

    def __init__(self) -> None:
        self.launched: list[tuple[list[int], int, int]] = []

    def launch(self, addresses: Sequence[int], workspace: int, stream: int) -> None:
        self.launched.append((list(addresses), workspace, stream))


class Library:
    def __init__(self, plan: Plan) -> None:
        self.made = plan

    def plan(self, call: LibraryCall) -> Plan:
        if call.k > 100:
            raise DeviceError("cublaslt has no algorithm")
        return self.made


class Memory:
    """A pool that gives addresses of nothing."""

    def __init__(self) -> None:
        self.taken = 0

    def take(self, nbytes: int) -> Any:
        self.taken += 1
        return types.SimpleNamespace(address=4096 * self.taken)


def _append(kernel: int, bases: Sequence[int], offset: int = 0) -> Appended:
    operands = tuple(Operand(b, offset) for b in bases)
    return Appended(kernel, 1, 0, 1, 0, (), operands, ())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(library_calls, "rehearse", lambda *_: None)
    return Plan()


def test_calls_of_a_program(plan: Plan) -> None:
    memory: Any = Memory()
    calls = library_calls.LibraryCalls({1: CALL}, memory, {"cublaslt": lambda: Library(plan)})
    appends = [_append(0, [7, 8, 9, 0]), _append(1, [3, 2, 2, 0], 256), _append(1, [0, 2, 2, 4])]
    assert calls.bases(appends) == (0, 2, 3, 4)
    bases = [1 << 20, 0, 2 << 20, 3 << 20, 4 << 20]
    assert not calls.launch(0, appends[0], bases, 16, 5)
    assert calls.launch(1, appends[1], bases, 16, 5)
    assert calls.launch(2, appends[2], bases, 16, 5)
    (first, one, stream), (second, other, _) = plan.launched
    assert first == [(3 << 20) + 256, (2 << 20) + 256, (2 << 20) + 256, (1 << 20) + 256]
    assert second == [1 << 20, 2 << 20, 2 << 20, 4 << 20]
    assert (stream, one != other) == (5, True)
    assert calls.remarks == []


def test_own_kernels_run_where_the_library_does_not(plan: Plan) -> None:
    def absent() -> Any:
        raise DeviceError("cublaslt does not load: no such file")

    memory: Any = Memory()
    append = _append(1, [0, 0, 0, 0])
    for opened, call, said in (
        ({"cublaslt": absent}, CALL, "cublaslt does not load: no such file"),
        ({"cublaslt": lambda: Library(plan)}, replace(CALL, k=200), "cublaslt has no algorithm"),
        ({}, CALL, "library 'cublaslt' is not known"),
    ):
        calls = library_calls.LibraryCalls({1: call}, memory, opened)
        assert not calls.launch(0, append, [4096], 16, 5)
        assert calls.remarks == [said]
        assert calls.bases([append]) == ()
    # A view may start anywhere.
    calls = library_calls.LibraryCalls({1: CALL}, memory, {"cublaslt": lambda: Library(plan)})
    assert not calls.launch(0, _append(1, [0, 0, 0, 0], 8), [4096], 16, 5)
    assert plan.launched == []


# The choice.


def measured(source: str, ns: float) -> ModuleOp:
    """As after `measure-rtasks`, every alternative having taken so long."""
    module = formed(source)
    for op in roperators(module):
        assert op.alternatives is not None
        op.alternatives = ArrayAttr([a.taking(ns, "a GPU") for a in op.alternatives])
    return module


def test_the_library_is_named_where_it_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for took, named in ((900.0, "cublaslt"), (1100.0, None)):
        monkeypatch.setattr(measure_library_calls, "_took", lambda _, took=took: took)
        module = measured(text((64,), 32, 48, bias=True), 1000.0)
        (op,) = roperators(module)
        measure_library_calls.consider(op)
        assert (op.library.data if op.library else None) == named
    (op,) = roperators(formed(text((64,), 32, 48)))
    measure_library_calls.consider(op)
    assert op.library is None, "what was not measured is no match"


def test_a_library_that_is_not_there_is_remarked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: LibraryCall) -> float:
        raise DeviceError("cublaslt: nvmath-python is not installed")

    said: list[str] = []
    monkeypatch.setattr(measure_library_calls, "_took", absent)
    monkeypatch.setattr(
        measure_library_calls, "missed", lambda op, name, form, *v: said.append(form.format(*v))
    )
    (op,) = roperators(measured(text((64,), 32, 48), 1000.0))
    measure_library_calls.consider(op)
    assert op.library is None
    assert said == ["cublaslt: nvmath-python is not installed"]


def scheduled(monkeypatch: pytest.MonkeyPatch) -> ModuleOp:
    monkeypatch.setattr(measure_library_calls, "_took", lambda _: 500.0)
    module = measured(text((64,), 32, 48, bias=True, addend=True), 1000.0)
    for op in roperators(module):
        measure_library_calls.consider(op)
    return run(module, level_pipeline("schedule", "h200"))


def test_a_scheduled_program_says_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    module = scheduled(monkeypatch)
    assert 'library = "cublaslt"' in str(module)
    source = emit_module(module, IrkitContext().weights, "cuda")
    program, facts = read_facts(source)
    ((number, call),) = facts.calls.items()
    assert program.kernels[number].startswith("gemm")
    assert (call.m, call.n, call.k) == (64, 48, 32)
    assert NONE not in (call.bias, call.addend)
    # Its own kernel is there all the same.
    assert f"op_{number}" in facts.entries


def test_a_library_named_by_hand_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device("h200")
    (op,) = roperators(scheduled(monkeypatch))
    assert why_illegal(op, gpu) is None
    op.library = StringAttr("mkl")
    assert why_illegal(op, gpu) == "library 'mkl': expected cublaslt, on a GPU"
    for op in roperators(run(formed(text((64,), 32, 48, more="graph.relu")), "schedule-wavefront")):
        op.library = StringAttr("cublaslt")
        assert why_illegal(op, gpu) == "library 'cublaslt' does not compute it, or not as exactly"
